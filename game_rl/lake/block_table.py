"""What a view knows of each block: where it is, and which of its transitions are seen."""

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
        ("hidden", "<u2"),  # how many of its first transitions are not seen
        ("surplus", "<u2"),  # likewise of its last
        ("edge", "<i8"),  # the rank that comes after its last transition's
        ("is_continued", "?"),  # the next block begins with the transition after its last
    ]
)


@dataclass(frozen=True)
class Limits:
    """Which transitions are seen.

    Attributes:
        firsts: number of the first of each sequence, by "stream/env"; 0 where there is none.
        ends: number after the last of each, and no other sequence is seen; None: all are.
    """

    firsts: Mapping[str, int]
    ends: Mapping[str, int] | None

    def of(self, stream: str, envs: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First number and end of each of these envs' sequences."""
        known, which = np.unique(envs, return_inverse=True)
        names = [f"{stream}/{env}" for env in known.tolist()]
        firsts = np.array([self.firsts.get(name, 0) for name in names], np.int64)
        endless = np.iinfo(np.int64).max
        ends = [endless if self.ends is None else self.ends.get(name, 0) for name in names]
        return firsts[which], np.array(ends, np.int64)[which]


def seen_blocks(segment: SealedSegment, limits: Limits, *, position: int, stream: int) -> Records:
    """Of those blocks of a segment that are seen, in the order of the file; no edges yet.

    Args:
        position: of the segment among the view's.
        stream: position of its stream among the view's.

    Raises:
        FileNotFoundError: the file is gone.
        LakeError: its footer is changed.
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
    """Of each block, its transitions that are seen."""
    n: NDArray[np.int64] = records["head"]["n_transitions"].astype(np.int64)
    n -= records["hidden"]
    n -= records["surplus"]
    return n


def by_time(records: Records) -> Records:
    """By sequence and number; those without a transition stay in their order."""
    return records[np.lexsort((records["head"]["first"], records["sequence"]))]


def number(records: Records, *, first_rank: int) -> None:
    """Give ordered blocks their edges, and say which the next one continues; not of the last."""
    records["edge"] = first_rank + np.cumsum(n_seen(records))
    heads, sequences = records["head"], records["sequence"]
    ends = heads["first"] + heads["n_transitions"]
    records["is_continued"][:-1] = (ends[:-1] == heads["first"][1:]) & (
        sequences[:-1] == sequences[1:]
    )
