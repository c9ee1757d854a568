"""A view of a Lake: which transitions it has and where, fixed at one moment."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake import block as blocks
from game_rl.lake.block import Block, Columns, DamagedBlockError
from game_rl.lake.schema import LakeSchema
from game_rl.lake.segment import SealedSegment, damaged
from game_rl.lake.segment_names import SegmentName

Indices = NDArray[np.int64]


class EvictedError(LakeError):
    """A segment of the view is gone; a new view does not have it."""


@dataclass(frozen=True)
class LakeView:
    """The transitions of some segments, ordered by stream, env and number.

    A transition's rank is its place in that order. So ranks do not depend on how the Lake was cut
    into blocks and files. Blocks are numbered in the same order.

    Attributes:
        sequences: number of the next transition of each, by "stream/env"; found if not given.
        horizon: number of the first transition of each that is seen; 0 where there is none.
        limits: number after the last transition of each that is seen, and no other sequence is;
            None: all are, to their ends.
    """

    schema: LakeSchema
    segments: Sequence[SealedSegment]
    sequences: Mapping[str, int] = field(default_factory=dict)
    horizon: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        if not self.sequences:
            object.__setattr__(self, "sequences", self._found_sequences())

    def _found_sequences(self) -> dict[str, int]:
        return ends_of(self.segments)

    @cached_property
    def streams(self) -> list[str]:
        """Names, sorted."""
        return sorted({stream_of(segment) for segment in self.segments})

    @cached_property
    def _unordered(self) -> tuple[NDArray[np.void], Indices, Indices]:
        """Heads, sequences, and the order that sorts those that are seen by sequence and time."""
        rank = {stream: number for number, stream in enumerate(self.streams)}
        heads = [np.empty(0, blocks.HEAD), *(segment.heads for segment in self.segments)]
        joined = np.concatenate(heads)
        ranks = [rank[stream_of(segment)] for segment in self.segments]
        streams = np.repeat(np.array(ranks, np.int64), [len(part) for part in heads[1:]])
        sequences = (streams << 32) + joined["env"].astype(np.int64)
        order = np.lexsort((joined["first"], sequences))  # stable: some have no transition
        starts = joined["first"].astype(np.int64)
        ends, seen_from = starts + joined["n_transitions"], self._firsts(sequences)
        is_seen = (ends > seen_from) | (joined["n_transitions"] == 0) & (ends == seen_from)
        is_seen &= starts < self._limits(sequences)
        return joined, sequences, order[is_seen[order]]

    def _firsts(self, sequences: Indices) -> Indices:
        """Of blocks of these sequences, the number of the first transition that is seen."""
        return self._by_sequence(self.horizon, sequences, otherwise=0)

    def _limits(self, sequences: Indices) -> Indices:
        """Likewise, the number after the last."""
        otherwise = np.iinfo(np.int64).max if self.limits is None else 0
        return self._by_sequence(self.limits or {}, sequences, otherwise=otherwise)

    def _by_sequence(
        self, numbers: Mapping[str, int], sequences: Indices, *, otherwise: int
    ) -> Indices:
        rank = {stream: number for number, stream in enumerate(self.streams)}
        keys, which = np.unique(sequences, return_inverse=True)
        found = np.full(len(keys), otherwise, np.int64)
        for name, number in numbers.items():
            stream, _, env = name.rpartition("/")
            if stream in rank:
                found[keys == (rank[stream] << 32) + int(env)] = number
        numbers_of: Indices = found[which]
        return numbers_of

    @cached_property
    def heads(self) -> NDArray[np.void]:
        """Of every block."""
        heads, _, order = self._unordered
        return heads[order]

    @cached_property
    def block_sequences(self) -> Indices:
        """Of every block: position of its stream among the sorted names x 2^32 + env."""
        _, sequences, order = self._unordered
        return sequences[order]

    @cached_property
    def hidden(self) -> Indices:
        """Of every block, how many of its first transitions are not seen."""
        firsts = self._firsts(self.block_sequences)
        return np.maximum(0, firsts - self.heads["first"].astype(np.int64))

    @cached_property
    def surplus(self) -> Indices:
        """Of every block, how many of its last transitions are not seen."""
        ends = self.heads["first"].astype(np.int64) + self.heads["n_transitions"]
        surplus: Indices = np.maximum(0, ends - self._limits(self.block_sequences))
        return surplus

    @cached_property
    def n_transitions(self) -> Indices:
        """Of every block, those that are seen."""
        return self.heads["n_transitions"].astype(np.int64) - self.hidden - self.surplus

    @cached_property
    def continued(self) -> NDArray[np.bool_]:
        """The next block begins with the transition after this block's last."""
        heads, sequences = self.heads, self.block_sequences
        follows = np.zeros(len(heads), np.bool_)
        ends = heads["first"] + heads["n_transitions"]
        follows[:-1] = (ends[:-1] == heads["first"][1:]) & (sequences[:-1] == sequences[1:])
        return follows

    @cached_property
    def _places(self) -> tuple[Indices, Indices]:
        """Of every block: its segment, its offset there."""
        order = self._unordered[2]
        lengths = [len(segment.heads) for segment in self.segments]
        offsets = [np.empty(0, np.int64), *(segment.offsets for segment in self.segments)]
        owners = np.repeat(np.arange(len(lengths)), lengths)
        return owners[order], np.concatenate(offsets)[order]

    @cached_property
    def edges(self) -> Indices:
        """Of every block, the rank that comes after its last transition's."""
        return np.cumsum(self.n_transitions)

    @cached_property
    def stream_edges(self) -> Indices:
        """Of every stream, the rank that comes after its last transition's."""
        last = np.searchsorted(self.block_sequences >> 32, np.arange(len(self.streams)), "right")
        edges: Indices = np.append(0, self.edges)[last]
        return edges

    def path_of(self, number: int) -> Path:
        """The file that a block is in."""
        owner = int(self._places[0][number])
        return self.segments[owner].path

    def places(self, ranks: Indices) -> tuple[Indices, Indices]:
        """Of transitions, the numbers of their blocks and their places among the block's own."""
        numbers = np.searchsorted(self.edges, ranks, side="right")
        starts: Indices = self.edges[numbers] - self.n_transitions[numbers]
        return numbers, ranks - starts

    def __len__(self) -> int:
        """Transitions."""
        return int(self.n_transitions.sum())

    def encoded(self, number: int, n_bytes: int | None = None) -> bytes:
        """A block as it is on disk, not checked; all of it or the first `n_bytes`.

        Raises:
            EvictedError: its segment is gone.
        """
        path, offset = self.path_of(number), int(self._places[1][number])
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise EvictedError(f"{path} was evicted; take a new view of the Lake") from None
        try:
            length = blocks.total_bytes(self.heads[number]) if n_bytes is None else n_bytes
            return os.pread(file, length, offset)
        finally:
            os.close(file)

    def block(self, number: int) -> Block:
        """Read and decompress one.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        data = self.encoded(number)
        try:
            self._check_head(number, data)
            block = blocks.decode(data, self.schema)
            return block.without(int(self.hidden[number]), int(self.surplus[number]))
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None

    def columns(self, number: int) -> Columns:
        """Of one block, without reading its frames.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        head = self.heads[number]
        data = self.encoded(number, blocks.HEAD.itemsize + int(head["columns_bytes"]))
        try:
            self._check_head(number, data)
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None
        return self.columns_of(number, data)

    def columns_of(self, number: int, data: bytes) -> Columns:
        """Of one block, whose bytes up to the end of its columns have been read.

        Raises:
            LakeError: they are damaged.
        """
        try:
            columns = blocks.decode_columns(self.heads[number], data, self.schema)
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None
        n_first, n_last = int(self.hidden[number]), int(self.surplus[number])
        return columns.without(n_first, n_last) if n_first or n_last else columns

    def whole(self, number: int) -> bytes:
        """A block as it is on disk, its checksums compared.

        Raises:
            EvictedError: its segment is gone.
            LakeError: it is damaged.
        """
        data = self.encoded(number)
        try:
            self._check_head(number, data)
            blocks.check_payload(self.heads[number], data)
        except DamagedBlockError as error:
            raise self.damaged_block(number, error) from None
        return data

    def _check_head(self, number: int, data: bytes) -> None:
        """Compare with the footer's copy."""
        if data[: blocks.HEAD.itemsize] != self.heads[number].tobytes():
            raise DamagedBlockError("its head is changed")

    def damaged_block(self, number: int, error: DamagedBlockError) -> LakeError:
        """The error that names it."""
        offset = self._places[1][number]
        return damaged(self.path_of(number), f"the block at byte {offset:,}: {error}")


def ends_of(segments: Iterable[SealedSegment]) -> dict[str, int]:
    """Number of the next transition of each sequence, by "stream/env"."""
    ends: dict[str, int] = {}
    for segment in segments:
        for name, end in segment.ends.items():
            ends[name] = max(end, ends.get(name, 0))
    return ends


def stream_of(segment: SealedSegment) -> str:
    return SegmentName.of(segment.path).stream
