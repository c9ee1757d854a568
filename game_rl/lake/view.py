"""A view of a Lake: the transitions that it has at one moment, and the table of where they are."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.files.durable_files import BINARY, read_at
from game_rl.lake import block as blocks
from game_rl.lake.block import HEAD, Block, Columns, DamagedBlockError
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.segment import DamagedFileError, SealedSegment, SegmentName

Records = NDArray[np.void]

RECORD = np.dtype(
    [
        ("head", HEAD),
        ("sequence", "<i8"),  # position of its stream among the sorted names x 2^32 + env
        ("segment", "<u4"),  # position of its file
        ("offset", "<i8"),  # in that file
        ("hidden", "<u2"),  # how many of its first transitions are not visible
        ("surplus", "<u2"),  # how many of its last transitions are not visible
        ("edge", "<i8"),  # the rank after that of its last visible transition
        ("is_continued", "?"),  # whether the next block begins with the transition after its last
    ]
)


@dataclass(frozen=True)
class Limits:
    """The limits of the visible transitions.

    Attributes:
        firsts: number of the first visible transition of each sequence, by "stream/env"; 0 for a
            sequence without an entry.
        ends: number after the last visible transition of each sequence. Sequences without an entry
            are not visible. None: all transitions from `firsts` on are visible.
    """

    firsts: Mapping[str, int]
    ends: Mapping[str, int] | None

    def of(self, stream: str, envs: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first number and the end of each of these envs' sequences."""
        known, which = np.unique(envs, return_inverse=True)
        names = [f"{stream}/{env}" for env in known.tolist()]
        firsts = np.array([self.firsts.get(name, 0) for name in names], np.int64)
        endless = np.iinfo(np.int64).max
        ends = [endless if self.ends is None else self.ends.get(name, 0) for name in names]
        return firsts[which], np.array(ends, np.int64)[which]


def seen_blocks(segment: SealedSegment, limits: Limits, *, position: int, stream: int) -> Records:
    """Return records of a segment's visible blocks, in the order of the file, without edges.

    Args:
        position: position of the segment among those of the view.
        stream: position of its stream among those of the view.

    Raises:
        FileNotFoundError: the file is gone.
        LakeError: its footer is damaged.
    """
    index = segment.index()
    heads = index.heads
    starts = heads["first"].astype(np.int64)
    n = heads["n_transitions"]
    firsts, limit = limits.of(SegmentName.of(segment.path).stream, heads["env"])
    ends = starts + n
    is_seen = (ends > firsts) | (n == 0) & (ends == firsts)
    is_seen &= np.maximum(starts, firsts) < limit
    records = np.zeros(int(is_seen.sum()), RECORD)
    records["head"] = heads[is_seen]
    records["sequence"] = (stream << 32) + heads["env"][is_seen].astype(np.int64)
    records["segment"] = position
    records["offset"] = index.offsets[is_seen]
    records["hidden"] = np.maximum(0, firsts - starts)[is_seen]
    records["surplus"] = np.maximum(0, ends - limit)[is_seen]
    return records


def n_seen(records: Records) -> NDArray[np.int64]:
    """Return the number of visible transitions of each block."""
    n: NDArray[np.int64] = records["head"]["n_transitions"].astype(np.int64)
    n -= records["hidden"]
    n -= records["surplus"]
    return n


def by_time(records: Records) -> Records:
    """Sort by sequence and number; blocks without a transition keep their order."""
    return records[np.lexsort((records["head"]["first"], records["sequence"]))]


def number_blocks(records: Records, *, first_rank: int) -> None:
    """Fill in `edge` of ordered blocks, and `is_continued` of all but the last."""
    records["edge"] = first_rank + np.cumsum(n_seen(records))
    heads = records["head"]
    sequences = records["sequence"]
    ends = heads["first"] + heads["n_transitions"]
    records["is_continued"][:-1] = (ends[:-1] == heads["first"][1:]) & (
        sequences[:-1] == sequences[1:]
    )


Indices = NDArray[np.int64]


class EvictedError(LakeError):
    """A segment of the view is gone. A new view does not have it."""


@dataclass(frozen=True)
class LakeView:
    """The transitions of some segments, ordered by stream, env and number.

    A transition's rank is its place in that order. So ranks do not depend on how the Lake was cut
    into blocks and files. Blocks are numbered in the same order.

    Attributes:
        sequences: number of the next transition of each sequence, by "stream/env"; read from the
            segments if not given.
        horizon: number of the first visible transition of each sequence; 0 for a sequence without
            an entry.
        limits: number after the last visible transition of each sequence. Sequences without an
            entry are not visible. None: all sequences are visible to their ends.
    """

    schema: LakeSchema
    segments: Sequence[SealedSegment]
    sequences: Mapping[str, int] = field(default_factory=dict)
    horizon: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        if not self.sequences:
            object.__setattr__(self, "sequences", ends_of(self.segments))

    @cached_property
    def streams(self) -> list[str]:
        """The names of the streams, sorted."""
        return sorted({stream_of(segment) for segment in self.segments})

    def parts(self) -> Iterator[Records]:
        """Yield the records of each segment's visible blocks, not in the view's order.

        Raises:
            EvictedError: a segment is gone.
            LakeError: a segment's footer is damaged.
        """
        rank = {stream: number for number, stream in enumerate(self.streams)}
        limits = Limits(self.horizon, self.limits)
        for position, segment in enumerate(self.segments):
            stream = rank[stream_of(segment)]
            try:
                yield seen_blocks(segment, limits, position=position, stream=stream)
            except FileNotFoundError:
                raise _evicted(segment.path) from None

    @cached_property
    def table(self) -> Records:
        """The records of all blocks."""
        records = by_time(np.concatenate([np.empty(0, RECORD), *self.parts()]))
        number_blocks(records, first_rank=0)
        return records

    @property
    def heads(self) -> NDArray[np.void]:
        """The heads of all blocks."""
        heads: NDArray[np.void] = self.table["head"]
        return heads

    @property
    def block_sequences(self) -> Indices:
        """Each block's sequence: position of its stream among the sorted names x 2^32 + env."""
        sequences: Indices = self.table["sequence"]
        return sequences

    @property
    def n_transitions(self) -> Indices:
        """Number of visible transitions of each block."""
        return n_seen(self.table)

    @property
    def continued(self) -> NDArray[np.bool_]:
        """Whether the next block begins with the transition after the last one of each block."""
        continued: NDArray[np.bool_] = self.table["is_continued"]
        return continued

    @cached_property
    def edges(self) -> Indices:
        """The rank after that of the last transition, for each block."""
        return np.ascontiguousarray(self.table["edge"])

    @cached_property
    def stream_edges(self) -> Indices:
        """The rank after that of the last transition, for each stream."""
        last = np.searchsorted(self.block_sequences >> 32, np.arange(len(self.streams)), "right")
        edges: Indices = np.append(0, self.edges)[last]
        return edges

    def record(self, number: int) -> np.void:
        """Return the record of one block."""
        record: np.void = self.table[number]
        return record

    def find(self, ranks: Indices) -> tuple[Indices, Records]:
        """Return the block numbers and the blocks' records of the transitions with these ranks."""
        numbers = np.searchsorted(self.edges, ranks, side="right")
        return numbers, self.table[numbers]

    def path_of(self, number: int) -> Path:
        """Return the file that has a block."""
        return self.segments[int(self.record(number)["segment"])].path

    def __len__(self) -> int:
        """Return the number of visible transitions."""
        return int(self.edges[-1]) if len(self.edges) else 0

    def encoded(self, number: int, n_bytes: int | None = None) -> bytes:
        """Read a block's bytes without checking them, all or the first `n_bytes`.

        Raises:
            EvictedError: its segment is gone.
        """
        record = self.record(number)
        path = self.segments[int(record["segment"])].path
        try:
            file = os.open(path, os.O_RDONLY | BINARY)
        except FileNotFoundError:
            raise _evicted(path) from None
        try:
            length = blocks.block_bytes(record["head"]) if n_bytes is None else n_bytes
            return read_at(file, length, int(record["offset"]))
        finally:
            os.close(file)

    def block(self, number: int) -> Block:
        """Read and decompress a block.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        data = self._with_its_head(number)
        try:
            return blocks.decode(data, self.schema).without(*self._unseen(number))
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None

    def columns(self, number: int) -> Columns:
        """Read the columns of a block, but not its frames.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        head = self.record(number)["head"]
        data = self._with_its_head(number, blocks.HEAD.itemsize + int(head["columns_bytes"]))
        return self.columns_of(number, data)

    def columns_of(self, number: int, data: bytes) -> Columns:
        """Decode the columns of a block from its bytes, which may end after the columns.

        Raises:
            LakeError: the columns are damaged.
        """
        try:
            columns = blocks.decode_columns(self.record(number)["head"], data, self.schema)
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None
        unseen = self._unseen(number)
        return columns.without(*unseen) if any(unseen) else columns

    def whole(self, number: int) -> bytes:
        """Read a block's bytes and verify their checksums.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        data = self._with_its_head(number)
        try:
            blocks.check_payload(self.record(number)["head"], data)
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None
        return data

    def _with_its_head(self, number: int, n_bytes: int | None = None) -> bytes:
        """As `encoded`, after comparing the block's head with its copy in the footer."""
        data = self.encoded(number, n_bytes)
        if data[: blocks.HEAD.itemsize] != self.record(number)["head"].tobytes():
            raise self.damaged_block(number, "its head differs from the copy in the footer")
        return data

    def _unseen(self, number: int) -> tuple[int, int]:
        """Return how many of a block's first and of its last transitions are not visible."""
        record = self.record(number)
        return int(record["hidden"]), int(record["surplus"])

    def damaged_block(self, number: int, error: DamagedBlockError | str) -> LakeError:
        """Return the error that names a damaged block."""
        offset = int(self.record(number)["offset"])
        what = f"the block at byte {offset:,}: {error}"
        return DamagedFileError(self.path_of(number), what)


def ends_of(segments: Iterable[SealedSegment]) -> dict[str, int]:
    """Return the number of the next transition of each sequence, by "stream/env"."""
    ends: dict[str, int] = {}
    for segment in segments:
        for name, end in segment.ends.items():
            ends[name] = max(end, ends.get(name, 0))
    return ends


def _evicted(path: Path) -> EvictedError:
    return EvictedError(f"{path} was evicted; take a new view of the Lake")


def stream_of(segment: SealedSegment) -> str:
    return SegmentName.of(segment.path).stream
