"""What a checkpoint keeps of a Lake: the mark, and the state of the run's stream and replay."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field

import numpy as np

from game_rl.files.saved import CheckpointFile, Natural, Saved, from_document, to_document

_KIND = "mark of a lake, format 1"


@dataclass(frozen=True, order=True)
class MarkedSegment:
    name: str
    sha256: str
    n_bytes: int
    n_transitions: int


@dataclass(frozen=True)
class Mark:
    """The sealed segments of a Lake, and how far each sequence has come.

    Attributes:
        sequences: number of the next transition, by "stream/env".
        horizon: number of the first visible transition, by "stream/env"; 0 for a sequence without
            an entry.
    """

    segments: tuple[MarkedSegment, ...]
    sequences: dict[str, int]
    horizon: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        segments = [asdict(segment) for segment in self.segments]
        values = {"segments": segments, "lanes": self.sequences, "horizon": self.horizon}
        return to_document(_KIND, values)

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "Mark":
        """The reverse of `to_json`.

        Raises:
            LakeError: the text, which is from `source`, is not a mark or is damaged.
        """
        values = from_document(text, _KIND, source=source)
        segments = tuple(MarkedSegment(**segment) for segment in values["segments"])
        return cls(segments, values["lanes"], values.get("horizon", {}))

    def of(self, streams: Collection[str]) -> "Mark":
        """Return the part of this mark that belongs to these streams."""

        def is_theirs(sequence: str) -> bool:
            return sequence.rpartition("/")[0] in streams

        return Mark(
            tuple(s for s in self.segments if s.name.partition(".")[0] in streams),
            {name: end for name, end in self.sequences.items() if is_theirs(name)},
            {name: first for name, first in self.horizon.items() if is_theirs(name)},
        )

    def joined(self, other: "Mark") -> "Mark":
        """Return a mark of the streams of both, which must have none in common."""
        return Mark(
            (*self.segments, *other.segments),
            self.sequences | other.sequences,
            self.horizon | other.horizon,
        )

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(sorted({name.rpartition("/")[0] for name in self.sequences}))

    def ends(self) -> dict[int, int]:
        """Return the number of each env's next transition, the highest over all streams."""
        ends: dict[int, int] = {}
        for name, end in self.sequences.items():
            env = int(name.rpartition("/")[2])
            ends[env] = max(end, ends.get(env, 0))
        return ends

    @property
    def n_transitions(self) -> int:
        return sum(segment.n_transitions for segment in self.segments)


NOTHING = Mark((), {})
"""The mark of a stream that has not begun."""


class ReplayPosition(Saved):
    """The state of a Pond without its slots, which are in the Lake."""

    n_slots: Natural
    heads: tuple[Natural, ...]
    n_appended: Natural
    n_held: Natural
    """Number of timesteps that could be drawn."""
    rng: str


class LakeState(Saved):
    """The state of a run's Lake at a checkpoint."""

    stream: str
    """The stream that the run writes."""
    mark: str
    """The mark as JSON, with a checksum of its own."""
    next_transitions: tuple[Natural, ...]
    """Number of each env's next timestep; empty if the Lake did not grow."""
    replay: ReplayPosition | None
    """State of the replay; None if the algorithm has none."""
    ancestors: tuple[str, ...] = ()
    """In a fork, the streams of the runs that it comes from, whose rows are in its replay. The mark
    includes them, and the numbers of the fork's own rows continue theirs."""

    def parsed_mark(self, source: object) -> Mark:
        """Return the mark; raises LakeError if it is damaged."""
        return Mark.from_json(self.mark, source=source)

    def forked(self, stream: str, *, replay_seed: int | None) -> "LakeState":
        """Return the state for a fork that writes `stream` and keeps the replay.

        Args:
            replay_seed: seed of a new generator that draws from the replay; None to keep the
                generator's state.
        """
        replay = self.replay
        if replay is not None and replay_seed is not None:
            rng = json.dumps(np.random.default_rng(replay_seed).bit_generator.state)
            replay = replay.model_copy(update={"rng": rng})
        return self.model_copy(
            update={
                "stream": stream,
                "ancestors": (*self.ancestors, self.stream),
                "replay": replay,
            }
        )


LAKE_FILE = CheckpointFile(
    name="lake.json",
    words="mark of the Lake",
    model=LakeState,
    fork="never",
    holds_replay=True,
)


def new_stream(stream: str) -> LakeState:
    """Return the state of a stream that has not begun."""
    return LakeState(stream=stream, mark=NOTHING.to_json(), next_transitions=(), replay=None)
