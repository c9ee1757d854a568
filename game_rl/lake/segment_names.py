"""Names of segments: STREAM.FIRST-LAST-TOKEN.

A writer numbers its segments. A segment that merges others has the numbers of the first and the
last of them. So it is known to contain them, even before they are deleted.
"""

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import LakeError

_STREAM = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"([A-Za-z0-9_-]+)\.(\d+)-(\d+)-[0-9a-f]+\.\w+")


@dataclass(frozen=True)
class SegmentName:
    stream: str
    first: int
    last: int

    @classmethod
    def of(cls, path: Path) -> "SegmentName":
        """Parse the name of the file at `path`.

        Raises:
            LakeError: it is not the name of a segment.
        """
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise LakeError(f"{path} does not have a segment's name; move it out of the Lake")
        return cls(match[1], int(match[2]), int(match[3]))

    def new(self, suffix: str) -> str:
        """Return a name that no other file has, not even one of the same numbers before a resume.

        Args:
            suffix: the kind of the file, such as `.segment`.
        """
        token = secrets.token_hex(3)
        return f"{self.stream}.{self.first:08d}-{self.last:08d}-{token}{suffix}"

    def contains(self, other: "SegmentName") -> bool:
        return (
            self != other
            and self.stream == other.stream
            and self.first <= other.first
            and other.last <= self.last
        )


def check_stream(stream: str) -> str:
    if not _STREAM.fullmatch(stream):
        raise LakeError(f"{stream!r} cannot name a stream; use only letters, digits, _ and -")
    return stream


def superseded(paths: list[Path]) -> set[Path]:
    """Return the segments that another of them contains.

    There are some if a compaction was stopped before it deleted them.
    """
    names = {path: SegmentName.of(path) for path in paths}
    merged = [name for name in names.values() if name.first < name.last]
    return {path for path, name in names.items() if any(m.contains(name) for m in merged)}
