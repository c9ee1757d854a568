"""Names of segments: STREAM.FIRST-LAST-TOKEN.

A writer numbers its segments. A segment that merges others has the numbers of the first and the
last of them, so that those are known to be in it, whenever they are deleted.
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
        """What the file at `path` is.

        Raises:
            LakeError: no Lake names a file so.
        """
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise LakeError(f"{path} is not named as a segment is; move it out of the Lake")
        return cls(match[1], int(match[2]), int(match[3]))

    def new(self, suffix: str) -> str:
        """A name that no other file has, even one of the same numbers before a resume."""
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
        raise LakeError(f"a stream is named with letters, digits, _ and -, not {stream!r}")
    return stream


def superseded(paths: list[Path]) -> set[Path]:
    """Those that another of them contains: compaction was stopped before it deleted them."""
    names = {path: SegmentName.of(path) for path in paths}
    merged = [name for name in names.values() if name.first < name.last]
    return {path for path, name in names.items() if any(m.contains(name) for m in merged)}
