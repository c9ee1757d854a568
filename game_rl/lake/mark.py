"""A mark: which data a Lake has at a moment, in a few kilobytes that a checkpoint keeps."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, field

from game_rl.lake.checked_json import from_document, to_document

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
