"""Writes the rows of one sequence into a Lake of arrays.

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
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import TRANSITION, Block, Columns
from game_rl.lake.lake import Lake
from game_rl.lake.lock import WriterLock
from game_rl.lake.segment_sink import SegmentSink

Rows = NDArray[np.void]


class RowWriter:
    """The writer of a new stream of one env, which works in the caller's thread.

    Rows are bytes, V[row bytes]. All rows are in the Lake when the `with` block has ended.

    Raises:
        OSError: from any method, if the disk is full.
    """

    def __init__(self, lake: Lake, stream: str, *, segment_bytes: int = 32 << 20) -> None:
        if lake.schema.arrays is None:
            raise LakeError(f"{lake.path} is a Lake of pictures; arrays need a Lake of their own")
        self._lake = lake
        self._lock = WriterLock(lake.path)
        try:
            self._sink = SegmentSink(
                lake,
                stream,
                segment_bytes=segment_bytes,
                on_full="pause",
                tell=lambda _: None,
            )
        except BaseException:
            self._lock.release()
            raise
        schema, n = lake.schema, lake.schema.block_frames
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._cut()
            if not self._sink.close() and kind is None:
                raise self._full()
        finally:
            self._lock.release()

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
