"""A mark: which data a Lake had at a moment, in a few kilobytes for a checkpoint."""

import json
from dataclasses import asdict, dataclass

from game_rl.errors import LakeError


@dataclass(frozen=True, order=True)
class MarkedSegment:
    name: str
    sha256: str
    n_bytes: int
    n_transitions: int


@dataclass(frozen=True)
class Mark:
    """The sealed segments of a Lake, and how far each lane had come.

    Attributes:
        lanes: number of the next transition, by "stream/env".
    """

    segments: tuple[MarkedSegment, ...]
    lanes: dict[str, int]

    def to_json(self) -> str:
        segments = [asdict(segment) for segment in self.segments]
        return json.dumps({"format": 1, "segments": segments, "lanes": self.lanes})

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "Mark":
        """The reverse of `to_json`.

        Raises:
            LakeError: `source`, which the text is from, holds no mark.
        """
        try:
            values = json.loads(text)
            if values["format"] != 1:
                raise LakeError(f"{source}: a mark of format {values['format']}; this reads 1")
            segments = tuple(MarkedSegment(**segment) for segment in values["segments"])
            lanes = {str(lane): int(first) for lane, first in values["lanes"].items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LakeError(f"{source}: not the mark of a Lake ({error})") from None
        return cls(segments, lanes)

    @property
    def n_transitions(self) -> int:
        return sum(segment.n_transitions for segment in self.segments)
