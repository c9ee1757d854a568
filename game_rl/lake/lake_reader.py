"""The view that a run has of a Lake that other runs write."""

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.files.durable_files import read_at
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.sampler import Batch, Sampler
from game_rl.lake.segment import SEALED, SHELVED
from game_rl.lake.view import (
    RECORD,
    EvictedError,
    Indices,
    LakeView,
    Records,
    by_time,
    n_seen,
    number_blocks,
    stream_of,
)
from game_rl.returns import LearnedRewards

_MOST_VIEWS = 5  # attempts at one draw while files are being deleted
_FOLLOWING = "following"  # suffix of the pin between checkpoints


class RowsLostError(LakeError):
    """The view has fewer rows than before, so ranks have changed their meaning."""


class LakeReader:
    """One view of a Lake, which changes only when it is renewed. Only pins are written.

    A pin keeps the rows of the view, even if the Lake's writers evict them. In a Lake that is not
    writable, rows can be lost, and `tell` reports it.

    Args:
        table_folder: folder on the disk that keeps the view's table.
        pins: prefix of the names of this run's pins.
        cache_bytes: memory for blocks that are kept decompressed.
        follows: whether the run follows the Lake as it grows. The Lake may then be empty at times,
            when its runs have just started or started again.
        learned: see Sampler.
        tell: is called with a sentence if rows were lost or pins cannot be written.

    Attributes:
        view: the present view.
        sealed_at: when the view's newest rows were sealed, by `time.time`; -inf unless the run
            follows the Lake.
    """

    def __init__(
        self,
        path: Path,
        *,
        table_folder: Path,
        pins: str,
        n_step: int,
        gamma: float,
        cache_bytes: int,
        follows: bool = False,
        learned: LearnedRewards | None = None,
        tell: Callable[[str], None],
    ) -> None:
        self.path = path
        self.sealed_at = -np.inf
        self._follows = follows
        self._listed: list[Path] = []
        self._lake = Lake.open(path, keeps_indices=False)
        self._table_folder = table_folder
        self._pins = pins
        self._sampler_of = partial(
            Sampler, n_step=n_step, gamma=gamma, cache_bytes=cache_bytes, learned=learned
        )
        self._tell = tell
        self._cannot_pin = self._cannot_store = False
        self.mark = Mark((), {})
        self._set_view(LakeView(self._lake.schema, ()))

    def take(self, ranks: Indices) -> Batch:
        """Return the transitions with these ranks in the view.

        Raises:
            RowsLostError: some rows are gone, and the view is smaller now.
            LakeError: a block is damaged, or all rows are gone.
        """
        for _ in range(_MOST_VIEWS):
            try:
                return self._sampler.take(ranks)
            except EvictedError:
                self._find_again(len(self.view))
        raise self._files_go()

    def renew(self, name: str) -> None:
        """Renew the view with all that is sealed now, and pin it under `name`.

        Raises:
            LakeError: the Lake is damaged.
        """
        mark = self._pinned_mark(name)
        if self._follows and self.mark.segments and not mark.segments:
            self._keep(name)  # the Lake's runs started again and will play the same timesteps
        elif mark != self.mark:
            self.mark = mark
            self._set_view(self._view_of(mark))

    def follow(self) -> None:
        """Renew the view and pin it until the next call; cheap if nothing is new.

        Raises:
            LakeError: the Lake is damaged.
        """
        listed = self._lake.files(SEALED)
        if listed and listed != self._listed:
            self.renew(_FOLLOWING)
            self._listed = listed

    def stop_following(self) -> None:
        """Remove the pin of what came after the last checkpoint."""
        self.unpin(_FOLLOWING)

    def unpin(self, name: str) -> None:
        with suppress(OSError, LakeError):  # `keep_pins` does so at the next start
            self._lake.unpin(f"{self._pins}.{name}")

    def keep_pins(self, names: Iterable[str]) -> None:
        """Remove all pins of this run but these."""
        with suppress(OSError, LakeError):
            kept = (f"{self._pins}.{name}" for name in names)
            self._lake.keep_pins(kept, among=f"{self._pins}.")

    def state(self) -> dict[str, Any]:
        """Return the view as JSON-compatible data for a checkpoint."""
        return {"path": str(self.path), "mark": self.mark.to_json(), "n_rows": len(self.view)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the view of a checkpoint without rows that are gone, and report the changes.

        Raises:
            LakeError: the Lake is damaged, or no row of the view is left.
        """
        self.mark = Mark.from_json(state["mark"], source=f"the checkpoint's view of {self.path}")
        if self._follows and not self.mark.segments:
            return
        self._set_view(self._view_of(self.mark))
        self._tell_of_lost(int(state["n_rows"]))
        if not self._follows:
            self._tell_of_grown()

    def _tell_of_grown(self) -> None:
        grown = sum(
            max(0, end - self.mark.sequences.get(name, 0))
            for name, end in self._lake.view().sequences.items()
        )
        if grown:
            self._tell(
                f"{self.path} has {grown:,} timesteps more than at the checkpoint; they are drawn "
                "from the next checkpoint on"
            )

    def _keep(self, name: str) -> None:
        with suppress(OSError):
            self._lake.keep(f"{self._pins}.{name}", self.mark)

    def _pinned_mark(self, name: str) -> Mark:
        try:
            return self._lake.pin(f"{self._pins}.{name}")
        except (OSError, LakeError) as error:
            mark = self._lake.mark()  # raises if the Lake itself is damaged
            if not self._cannot_pin:
                self._cannot_pin = True
                self._tell(
                    f"{self.path} is read without pins ({error}), so this run loses the rows that "
                    "its writers evict; make its folder pins writable, or learn from a copy"
                )
            return mark

    def _view_of(self, mark: Mark) -> LakeView:
        """Return the view at `mark`, from its files or, if some are gone, by its rows."""
        for _ in range(_MOST_VIEWS):
            with suppress(EvictedError):
                return self._stored(self._found(mark))
        raise self._files_go()

    def _found(self, mark: Mark) -> LakeView:
        with suppress(LakeError):
            return self._lake.view(mark)
        return self._lake.rows_of(mark)

    def _stored(self, view: LakeView) -> LakeView:
        try:
            return StoredView(view, self._table_folder)
        except OSError as error:
            if not self._cannot_store:
                self._cannot_store = True
                self._tell(
                    f"the table of {self.path} cannot be written to {self._table_folder} "
                    f"({error}), and is kept in memory instead; free some space there"
                )
            return view

    def _files_go(self) -> LakeError:
        return LakeError(
            f"the files of {self.path} are deleted while they are opened; learn from a copy of it"
        )

    def _find_again(self, n_rows: int) -> None:
        """Make the view again after files were renamed, merged or deleted."""
        self._set_view(self._view_of(self.mark))
        if len(self.view) != n_rows:
            self._tell_of_lost(n_rows)
            raise RowsLostError(f"{self.path} has lost rows")

    def _tell_of_lost(self, n_rows: int) -> None:
        lost = n_rows - len(self.view)
        if not len(self.view):
            raise LakeError(
                f"{self.path}: all {n_rows:,} rows that this run learned from are gone; copy them "
                "back, or take the Lake out of algorithm.learn_from.lakes"
            )
        if lost:
            self._tell(
                f"{self.path} has lost {lost:,} of the {n_rows:,} rows that this run learned from; "
                "it continues with the others, and no longer equals the run without the loss bit "
                "for bit"
            )

    def _set_view(self, view: LakeView) -> None:
        self.view = view
        if self._follows:
            self.sealed_at = _sealed_at(view)
        if len(view):
            self._sampler = self._sampler_of(view)


def _sealed_at(view: LakeView) -> float:
    """Return when the newest file of the view was sealed; -inf if it has none."""
    newest = {stream_of(segment): segment.path for segment in view.segments}  # the last wins
    found = [-np.inf]
    for path in newest.values():
        for place in (path, path.with_suffix(SHELVED)):
            with suppress(OSError):
                found.append(place.stat().st_mtime)
    return max(found)


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
        numbers = np.empty(len(ranks), np.int64)
        records = np.empty(len(ranks), RECORD)
        groups = np.searchsorted(self._stored.edges, ranks, side="right").tolist()
        for i, (group, rank) in enumerate(zip(groups, ranks.tolist(), strict=True)):
            some = _read(self._stored.file, group * _TOGETHER, _TOGETHER)
            place = int(np.searchsorted(some["edge"], rank, side="right"))
            numbers[i] = group * _TOGETHER + place
            records[i] = some[place]
        return numbers, records

    @cached_property
    def stream_edges(self) -> Indices:
        return np.cumsum(self._stored.by_stream)

    def __len__(self) -> int:
        return int(self._stored.by_stream.sum())


def _read(file: int, start: int, n: int) -> Records:
    """Return up to `n` records from `start`, fewer at the end of the table."""
    return np.frombuffer(read_at(file, n * TABLE_BYTES, start * TABLE_BYTES), RECORD)


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
        edges = [np.empty(0, np.int64)]
        n_blocks = 0
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
    runs = []
    place = 0
    for part in view.parts():
        records = by_time(part)
        file.write(records.tobytes())
        firsts = records["head"]["first"].astype(np.int64)
        found = np.unique(records["sequence"], return_index=True, return_counts=True)
        for sequence, start, n in zip(*(array.tolist() for array in found), strict=True):
            first = int(firsts[start])
            last = int(firsts[start + n - 1])
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
    waiting = np.empty(0, RECORD)
    edge = 0
    for records in groups:
        together = np.concatenate([waiting, records])
        number_blocks(together, first_rank=edge)
        done = together[:-1]
        waiting = together[-1:]
        edge = int(done["edge"][-1]) if len(done) else edge
        yield done
    yield waiting
