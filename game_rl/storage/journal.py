"""What of a run is on its way to storage: a file of lines that outlives every process.

Each line is on the disk before the next step begins. A torn last line is ignored; what it would
have said is done again, which is harmless.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError

from game_rl.config.saved import Saved


class Opened(Saved):
    """Uploads begin or go on; another address begins anew."""

    step: Literal["opened"] = "opened"
    to: str
    writer: str


class Seen(Saved):
    """A checkpoint is to be uploaded."""

    step: Literal["seen"] = "seen"
    timesteps: int
    n_bytes: int
    written_ns: int
    """When its folder was made: one that is trained again is another."""


class BlobUploaded(Saved):
    step: Literal["uploaded"] = "uploaded"
    sha256: str
    n_bytes: int
    was_there: bool = False
    segment: str | None = None
    """The file of the Lake that it is, which is not hashed again."""


class BlobVerified(Saved):
    """Storage says that it has all of its bytes."""

    step: Literal["verified"] = "verified"
    sha256: str


class Committed(Saved):
    """The manifest is there: the checkpoint can be fetched."""

    step: Literal["committed"] = "committed"
    timesteps: int


class Dropped(Saved):
    """It is not uploaded."""

    step: Literal["dropped"] = "dropped"
    timesteps: int
    reason: str


class VideosStored(Saved):
    step: Literal["videos"] = "videos"
    sha256: str
    """Of the list of them."""


Line = Annotated[
    Opened | Seen | BlobUploaded | BlobVerified | Committed | Dropped | VideosStored,
    Field(discriminator="step"),
]
_LINE: TypeAdapter[Line] = TypeAdapter(Line)


@dataclass
class UploadState:
    """What the lines say together.

    Attributes:
        waiting: bytes of the checkpoints that are neither committed nor dropped.
        seen: `written_ns` of all checkpoints that were seen.
        segments: sha256 of whole files of the Lake, by name.
    """

    to: str | None = None
    writer: str | None = None
    seen: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    dropped: dict[int, str] = field(default_factory=dict)
    uploaded: dict[str, int] = field(default_factory=dict)
    verified: set[str] = field(default_factory=set)
    segments: dict[str, tuple[str, int]] = field(default_factory=dict)
    videos: str | None = None

    def apply(self, line: Line) -> None:
        match line:
            case Opened(to=to, writer=writer):
                if to != self.to:
                    self.__init__()  # type: ignore[misc]  # nothing of it is at the new address
                self.to, self.writer = to, writer
            case Seen(timesteps=timesteps, n_bytes=n_bytes, written_ns=written_ns):
                self.seen[timesteps] = written_ns
                self.waiting[timesteps] = n_bytes
                self.committed.discard(timesteps)
                self.dropped.pop(timesteps, None)
            case BlobUploaded(sha256=sha256, n_bytes=n_bytes, segment=segment):
                self.uploaded[sha256] = n_bytes
                if segment is not None:
                    self.segments[segment] = (sha256, n_bytes)
            case BlobVerified(sha256=sha256):
                self.verified.add(sha256)
            case Committed(timesteps=timesteps):
                self.waiting.pop(timesteps, None)
                self.committed.add(timesteps)
            case Dropped(timesteps=timesteps, reason=reason):
                self.waiting.pop(timesteps, None)
                self.dropped[timesteps] = reason
            case VideosStored(sha256=sha256):
                self.videos = sha256


def parsed_lines(content: bytes) -> Iterable[Line]:
    """Every whole line that this version knows."""
    whole = content[: content.rfind(b"\n") + 1]
    for text in whole.splitlines():
        try:
            yield _LINE.validate_python(json.loads(text))
        except (ValidationError, ValueError):
            continue


def read_state(path: Path) -> UploadState:
    """Empty if there is no journal."""
    state = UploadState()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return state
    for line in parsed_lines(content):
        state.apply(line)
    return state


class Journal:
    """The file, open for appending by one process, and what it says.

    Raises:
        OSError: everywhere, where the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.state = read_state(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if _is_torn(path):
            os.write(self._file, b"\n")

    def write(self, line: Line) -> None:
        """Append it; it is on the disk when this returns, and only then part of the state."""
        data = line.model_dump_json(exclude_defaults=False).encode() + b"\n"
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)
        self.state.apply(line)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _is_torn(path: Path) -> bool:
    content = path.read_bytes()
    return bool(content) and not content.endswith(b"\n")
