"""The windows of a Lake of arrays, in the order in which they were written."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import JUMP, ROW_NUMBERS, TRANSITION
from game_rl.lake.view import LakeView


@dataclass(frozen=True)
class Window:
    """An observation, or the one after it.

    Attributes:
        place: of its transition in its sequence.
        rows: uint8 [rows, row bytes]; valid until the next window is asked for.
    """

    place: int
    is_next: bool
    rows: NDArray[np.uint8]


def sequences_of(view: LakeView) -> list[list[int]]:
    """Of each sequence, the numbers of its blocks.

    Raises:
        LakeError: rows are missing that others need.
    """
    for text in missing_rows(view).values():
        raise LakeError(text)
    return _sequences(view)


def missing_rows(view: LakeView) -> dict[str, str]:
    """By the name of a file, what is missing before it."""
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
    """Every observation of a sequence and every next one, each as soon as its rows are there.

    Memory holds two windows and a block at most, whatever the Lake has.

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
        f"{what} in its stream are missing, and a Lake of arrays needs them all; copy its files "
        "from where they were saved, or import the replay buffer again"
    )


class _Tail:
    """The newest rows of a sequence, in one array."""

    def __init__(self, window: int, row_bytes: int, block_rows: int) -> None:
        self._window = window
        self._rows = np.empty((2 * window + block_rows, row_bytes), np.uint8)
        self._n = self._end = 0  # rows that are held, and that there were

    def add(self, rows: NDArray[np.uint8]) -> None:
        if self._n + len(rows) > len(self._rows):  # so that what is moved does not overlap
            self._rows[: self._window] = self._rows[self._n - self._window : self._n]
            self._n = self._window
        self._rows[self._n : self._n + len(rows)] = rows
        self._n += len(rows)
        self._end += len(rows)

    def ending(self, row: int) -> NDArray[np.uint8]:
        """The window whose last row has this number."""
        end = self._n - (self._end - row - 1)
        return self._rows[end - self._window : end]
