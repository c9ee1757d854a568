"""Reads the windows of a Lake of arrays, in the order in which they were written."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import JUMP, ROW_NUMBERS, TRANSITION
from game_rl.lake.view import LakeView


@dataclass(frozen=True)
class Window:
    """An observation, or the next observation of a transition.

    Attributes:
        place: position of the transition in its sequence.
        is_next: whether this is the transition's next observation.
        rows: uint8 [rows, row bytes]; valid until the next window is requested.
    """

    place: int
    is_next: bool
    rows: NDArray[np.uint8]


def sequences_of(view: LakeView) -> list[list[int]]:
    """Return the block numbers of each sequence.

    Raises:
        LakeError: rows are missing that later ones need.
    """
    for text in missing_rows(view).values():
        raise LakeError(text)
    return _sequences(view)


def missing_rows(view: LakeView) -> dict[str, str]:
    """Return a message for each sequence with a gap, by the name of the first file after it."""
    found = {}
    for numbers in _sequences(view):
        row = first = 0
        for number in numbers:
            head, path = view.heads[number], view.path_of(number)
            if (int(head["row"]), int(head["first"])) != (row % ROW_NUMBERS, first):
                found[path.name] = _missing(f"{path}: rows that come before it")
                break
            row += int(head["n_rows"])
            first += int(head["n_transitions"])
    return found


def windows(view: LakeView, numbers: list[int]) -> Iterator[Window]:
    """Yield every observation and next observation of a sequence, as soon as its rows are read.

    Memory holds at most two windows and a block, whatever the size of the Lake.

    Raises:
        LakeError: a block is damaged, or the last rows are missing.
    """
    n_rows = view.schema.frame_stack
    tail = _Tail(n_rows, view.schema.packing.nbytes, view.schema.block_frames)
    place = row = 0
    due = None  # the row that completes the next observation
    for number in numbers:
        block = view.block(number)
        tail.add(block.frames)
        for flags in block.columns.flags.tolist():
            if row == due:
                yield Window(place - 1, is_next=True, rows=tail.ending(row))
                due = None
            if flags & TRANSITION:
                yield Window(place, is_next=False, rows=tail.ending(row))
                due = row + (n_rows if flags & JUMP else 1)
                place += 1
            row += 1
    if due is not None:
        raise LakeError(_missing(f"{view.path_of(numbers[-1])}: rows that come after it"))


def _sequences(view: LakeView) -> list[list[int]]:
    keys = np.unique(view.block_sequences)
    return [np.flatnonzero(view.block_sequences == key).tolist() for key in keys]


def _missing(what: str) -> str:
    return (
        f"{what} in its stream are missing, and a Lake of arrays needs all of them; restore the "
        "missing files from a copy, or import the replay buffer again"
    )


class _Tail:
    """The newest rows of a sequence, in one array."""

    def __init__(self, window: int, row_bytes: int, block_rows: int) -> None:
        self._window = window
        self._rows = np.empty((2 * window + block_rows, row_bytes), np.uint8)
        self._n = self._end = 0  # rows in the array, and rows added in total

    def add(self, rows: NDArray[np.uint8]) -> None:
        if self._n + len(rows) > len(self._rows):  # then the rows moved below do not overlap
            self._rows[: self._window] = self._rows[self._n - self._window : self._n]
            self._n = self._window
        self._rows[self._n : self._n + len(rows)] = rows
        self._n += len(rows)
        self._end += len(rows)

    def ending(self, row: int) -> NDArray[np.uint8]:
        """Return the window whose last row has this number."""
        end = self._n - (self._end - row - 1)
        return self._rows[end - self._window : end]
