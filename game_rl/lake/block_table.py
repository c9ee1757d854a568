"""A view's table of blocks: where each block is, and which of its transitions are visible."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.lake.block import HEAD
from game_rl.lake.segment import SealedSegment
from game_rl.lake.segment_names import SegmentName

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
    starts, n = heads["first"].astype(np.int64), heads["n_transitions"]
    firsts, limit = limits.of(SegmentName.of(segment.path).stream, heads["env"])
    ends = starts + n
    is_seen = (ends > firsts) | (n == 0) & (ends == firsts)
    is_seen &= np.maximum(starts, firsts) < limit
    records = np.zeros(int(is_seen.sum()), RECORD)
    records["head"] = heads[is_seen]
    records["sequence"] = (stream << 32) + heads["env"][is_seen].astype(np.int64)
    records["segment"], records["offset"] = position, index.offsets[is_seen]
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


def number(records: Records, *, first_rank: int) -> None:
    """Fill in `edge` of ordered blocks, and `is_continued` of all but the last."""
    records["edge"] = first_rank + np.cumsum(n_seen(records))
    heads, sequences = records["head"], records["sequence"]
    ends = heads["first"] + heads["n_transitions"]
    records["is_continued"][:-1] = (ends[:-1] == heads["first"][1:]) & (
        sequences[:-1] == sequences[1:]
    )
