"""A mark: which data a Lake had at a moment, in a few kilobytes for a checkpoint."""

from dataclasses import asdict, dataclass

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
    """The sealed segments of a Lake, and how far each sequence had come.

    Attributes:
        sequences: number of the next transition, by "stream/env".
    """

    segments: tuple[MarkedSegment, ...]
    sequences: dict[str, int]

    def to_json(self) -> str:
        segments = [asdict(segment) for segment in self.segments]
        return to_document(_KIND, {"segments": segments, "lanes": self.sequences})

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "Mark":
        """The reverse of `to_json`.

        Raises:
            LakeError: `source`, which the text is from, is something else or was changed.
        """
        values = from_document(text, _KIND, source=source)
        segments = tuple(MarkedSegment(**segment) for segment in values["segments"])
        return cls(segments, values["lanes"])

    @property
    def n_transitions(self) -> int:
        return sum(segment.n_transitions for segment in self.segments)
