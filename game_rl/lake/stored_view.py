"""A view whose table is in a file, so that its memory does not grow with the Lake's rows.

The file has no name, so it is gone when the process ends, however that happens.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from game_rl.lake.view import RECORD, Indices, LakeView, Records, by_time, n_seen, number_blocks

TABLE_BYTES = RECORD.itemsize
"""Bytes of each block's record on disk."""

_TOGETHER = 32  # records that are read at once to find a row


@dataclass(frozen=True)
class _Run:
    """Blocks of one sequence in one segment, in the order of their numbers.

    Attributes:
        first: number of the first transition of the first block.
        last: number of the first transition of the last block.
        place: position of the first block's record in the unordered file.
        length: number of blocks.
    """

    sequence: int
    first: int
    last: int
    place: int
    length: int


@dataclass
class _Stored:
    """An ordered table in a file.

    Attributes:
        edges: the `edge` of every `_TOGETHER`th block.
        by_stream: number of transitions of each stream.
    """

    file: int
    n_blocks: int
    edges: NDArray[np.int64]
    by_stream: NDArray[np.int64]


class StoredView(LakeView):
    """A LakeView to draw from that keeps its table in a file; `table` reads the whole file.

    Args:
        view: the view to store. Its segments should keep no index, because indices stay in memory.
        folder: a folder on the disk that will have the table.

    Raises:
        EvictedError: a segment is gone.
        LakeError: a segment's footer is damaged.
        OSError: the table cannot be written.
    """

    def __init__(self, view: LakeView, folder: Path) -> None:
        super().__init__(view.schema, view.segments, view.sequences, view.horizon, view.limits)
        object.__setattr__(self, "_stored", _stored(view, folder))
        object.__setattr__(self, "_latest", (-1, None))
        weakref.finalize(self, os.close, self._stored.file)

    _stored: _Stored
    _latest: tuple[int, np.void]

    @property
    def n_blocks(self) -> int:
        return self._stored.n_blocks

    @property
    def table(self) -> Records:
        return _read(self._stored.file, 0, self.n_blocks)

    def record(self, number: int) -> np.void:
        if self._latest[0] != number:
            object.__setattr__(self, "_latest", (number, _read(self._stored.file, number, 1)[0]))
        return self._latest[1]

    def find(self, ranks: Indices) -> tuple[Indices, Records]:
        numbers, records = np.empty(len(ranks), np.int64), np.empty(len(ranks), RECORD)
        groups = np.searchsorted(self._stored.edges, ranks, side="right").tolist()
        for i, (group, rank) in enumerate(zip(groups, ranks.tolist(), strict=True)):
            some = _read(self._stored.file, group * _TOGETHER, _TOGETHER)
            place = int(np.searchsorted(some["edge"], rank, side="right"))
            numbers[i], records[i] = group * _TOGETHER + place, some[place]
        return numbers, records

    @cached_property
    def stream_edges(self) -> Indices:
        return np.cumsum(self._stored.by_stream)

    def __len__(self) -> int:
        return int(self._stored.by_stream.sum())


def _read(file: int, start: int, n: int) -> Records:
    """Return up to `n` records from `start`, fewer at the end of the table."""
    return np.frombuffer(os.pread(file, n * TABLE_BYTES, start * TABLE_BYTES), RECORD)


def _stored(view: LakeView, folder: Path) -> _Stored:
    """Write the records of all segments to one file, then in order to another.

    Memory holds the records of one segment at a time.
    """
    with (
        tempfile.TemporaryFile(dir=folder) as unordered,
        tempfile.TemporaryFile(dir=folder) as file,
    ):
        runs = _written_runs(view, unordered)
        unordered.flush()
        edges, n_blocks = [np.empty(0, np.int64)], 0
        by_stream = np.zeros(len(view.streams), np.int64)
        for records in _numbered(_in_order(runs, unordered.fileno())):
            file.write(records.tobytes())
            np.add.at(by_stream, records["sequence"] >> 32, n_seen(records))
            is_last_of_group = np.arange(n_blocks + 1, n_blocks + 1 + len(records)) % _TOGETHER == 0
            edges.append(records["edge"][is_last_of_group])
            n_blocks += len(records)
        file.flush()
        return _Stored(os.dup(file.fileno()), n_blocks, np.concatenate(edges), by_stream)


def _written_runs(view: LakeView, file: BinaryIO) -> list[_Run]:
    runs, place = [], 0
    for part in view.parts():
        records = by_time(part)
        file.write(records.tobytes())
        firsts = records["head"]["first"].astype(np.int64)
        found = np.unique(records["sequence"], return_index=True, return_counts=True)
        for sequence, start, n in zip(*(array.tolist() for array in found), strict=True):
            first, last = int(firsts[start]), int(firsts[start + n - 1])
            runs.append(_Run(sequence, first, last, place + start, n))
        place += len(records)
    return runs


def _in_order(runs: list[_Run], file: int) -> Iterator[Records]:
    """Yield the records in order, one run at a time.

    Runs that overlap are sorted together. In a Lake that was only appended to, none overlap.
    """
    together: list[_Run] = []
    for run in sorted(runs, key=lambda run: (run.sequence, run.first)):
        follows = together and (
            run.sequence != together[0].sequence or run.first > max(r.last for r in together)
        )
        if follows:
            yield _sorted_runs(together, file)
            together = []
        together.append(run)
    if together:
        yield _sorted_runs(together, file)


def _sorted_runs(runs: list[_Run], file: int) -> Records:
    in_file = sorted(runs, key=lambda run: run.place)  # blocks of equal numbers keep this order
    records = np.concatenate([_read(file, run.place, run.length) for run in in_file])
    return records if len(runs) == 1 else by_time(records)


def _numbered(groups: Iterator[Records]) -> Iterator[Records]:
    """Fill in `edge` and `is_continued`.

    The last record of a group waits for the next group, which decides its `is_continued`.
    """
    waiting, edge = np.empty(0, RECORD), 0
    for records in groups:
        together = np.concatenate([waiting, records])
        number_blocks(together, first_rank=edge)
        done, waiting = together[:-1], together[-1:]
        edge = int(done["edge"][-1]) if len(done) else edge
        yield done
    yield waiting
