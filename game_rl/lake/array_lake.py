"""A Lake of arrays: rows are written, and windows read in order.

An observation is the newest T rows of its sequence, where T is the schema's `frame_stack`, and so
is the next observation. Blocks repeat nothing, so most windows begin in an earlier block:

    row       a0 ... a(T-2)  a(T-1)   a(T)    a(T+1)   b0 ... b(T-1)  b(T)
    timestep                 x        x                       x
                             |        |                       next observation: up to b(T)
                             |        next observation: up to a(T+1)
                             next observation: up to a(T)

Flags of a row with a timestep:

* FIRST: an episode begins with it.
* TERMINATED: done.
* TRUNCATED: done by a timeout.
* LATE_TIMEOUT: a timeout without done, which SB3 keeps too.
* JUMP: the next observation does not continue by one row, but is the T rows that follow.
"""

import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import JUMP, ROW_NUMBERS, TRANSITION, Block, Columns
from game_rl.lake.lake import Lake
from game_rl.lake.segment_sink import SegmentSink
from game_rl.lake.view import LakeView

Rows = NDArray[np.void]


class RowWriter(AbstractContextManager["RowWriter"]):
    """The writer of a new stream of one env, which works in the caller's thread.

    Rows are bytes, V[row bytes]. All rows are in the Lake when the `with` block has ended.

    Raises:
        OSError: from any method, if the disk is full.
    """

    def __init__(self, lake: Lake, stream: str, *, segment_bytes: int = 32 << 20) -> None:
        if lake.schema.arrays is None:
            raise LakeError(f"{lake.path} is a Lake of pictures; arrays need a Lake of their own")
        self._lake = lake
        self._sink = SegmentSink(
            lake, stream, segment_bytes=segment_bytes, on_full="pause", tell=lambda _: None
        )
        schema = lake.schema
        n = lake.schema.block_frames
        self._row = self._first = self._n = 0  # of the block: first row, first transition, rows
        self._rows: Rows = np.empty(n, f"V{schema.packing.nbytes}")
        self._flags = np.zeros(n, np.uint8)
        self._actions = np.zeros((n, *schema.action_shape), schema.action_dtype)
        self._rewards = np.zeros(n, np.float32)

    def add_rows(self, rows: Rows) -> None:
        """Append rows that have no timestep yet."""
        while len(rows):
            if self._n == len(self._rows):
                self._cut()
            n = min(len(rows), len(self._rows) - self._n)
            self._rows[self._n : self._n + n] = rows[:n]
            self._n += n
            rows = rows[n:]

    def add_transition(
        self, action: NDArray[np.generic], reward: NDArray[np.float32], flags: int
    ) -> None:
        """Append a timestep whose observation ends with the newest row."""
        row = self._n - 1
        self._flags[row] = flags | TRANSITION
        self._actions[row] = action
        self._rewards[row] = reward

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._cut()
        finally:
            is_whole = self._sink.close()
        if not is_whole and kind is None:
            raise self._full()

    def _cut(self) -> None:
        if not self._n:
            return
        columns = Columns(
            self._flags[: self._n],
            self._actions[: self._n],
            self._rewards[: self._n],
            np.zeros(self._n, np.uint32),
        )
        frames = self._rows[: self._n].view(np.uint8).reshape(self._n, -1)
        self._sink.put(Block(0, self._first, columns, frames, row=self._row))
        if self._sink.is_paused:
            raise self._full()
        self._first += len(columns.rows)
        self._row += self._n
        self._n = 0
        for column in (self._flags, self._actions, self._rewards):
            column[:] = 0

    def _full(self) -> OSError:
        return OSError(errno.ENOSPC, "no space left for the Lake", str(self._lake.path))


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
            head = view.heads[number]
            path = view.path_of(number)
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
