"""The journal of a run's uploads: a file of JSON lines that outlives every process.

Each line is on the disk before the next step begins. A torn last line is ignored, and the step that
it would have recorded is repeated, which is harmless.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from game_rl.files.json_lines import JsonLines, located_lines, parsed
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.storage.manifest import run_folder


class Opened(Saved):
    """An uploader has started. A new address resets the state."""

    step: Literal["opened"] = "opened"
    to: str
    writer: str


class Seen(Saved):
    """A checkpoint waits to be uploaded."""

    step: Literal["seen"] = "seen"
    timesteps: int
    n_bytes: int
    written_ns: int
    """Modification time of its folder: a checkpoint that is trained again has another one."""


class BlobUploaded(Saved):
    step: Literal["uploaded"] = "uploaded"
    sha256: str
    n_bytes: int
    was_there: bool = False
    segment: str | None = None
    """Name of the Lake's file that the blob is, so that the file is not hashed again."""


class BlobVerified(Saved):
    """Storage has confirmed the length of the blob."""

    step: Literal["verified"] = "verified"
    sha256: str


class Committed(Saved):
    """The manifest is stored, so the checkpoint can be fetched."""

    step: Literal["committed"] = "committed"
    timesteps: int


class Dropped(Saved):
    """A checkpoint will not be uploaded."""

    step: Literal["dropped"] = "dropped"
    timesteps: int
    reason: str


class VideosStored(Saved):
    step: Literal["videos"] = "videos"
    sha256: str
    """sha256 of the list of videos; empty once they are found to be gone."""


Line = Annotated[
    Opened | Seen | BlobUploaded | BlobVerified | Committed | Dropped | VideosStored,
    Field(discriminator="step"),
]
_LINE: TypeAdapter[Line] = TypeAdapter(Line)


@dataclass
class UploadState:
    """The state that all lines add up to.

    Attributes:
        seen: `written_ns` of all checkpoints that were seen, by timesteps.
        waiting: bytes of the checkpoints that are neither committed nor dropped, by timesteps.
        dropped: the reason, by timesteps.
        segments: sha256 and bytes of whole files of the Lake, by name.
        videos: sha256 of the list of videos that was stored last.
    """

    to: str | None = None
    writer: str | None = None
    seen: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    dropped: dict[int, str] = field(default_factory=dict)
    segments: dict[str, tuple[str, int]] = field(default_factory=dict)
    videos: str | None = None

    def apply(self, line: Line) -> None:
        match line:
            case Opened(to=to, writer=writer):
                if to != self.to:
                    self.__init__()  # type: ignore[misc]  # the new address has none of it
                self.to = to
                self.writer = writer
            case Seen(timesteps=timesteps, n_bytes=n_bytes, written_ns=written_ns):
                self.seen[timesteps] = written_ns
                self.waiting[timesteps] = n_bytes
                self.committed.discard(timesteps)
                self.dropped.pop(timesteps, None)
            case BlobUploaded(sha256=sha256, n_bytes=n_bytes, segment=str(segment)):
                self.segments[segment] = (sha256, n_bytes)
            case Committed(timesteps=timesteps):
                self.waiting.pop(timesteps, None)
                self.committed.add(timesteps)
            case Dropped(timesteps=timesteps, reason=reason):
                self.waiting.pop(timesteps, None)
                self.dropped[timesteps] = reason
            case VideosStored(sha256=sha256):
                self.videos = sha256


def read_lines(path: Path) -> Iterator[Line]:
    """Yield every whole line that this version knows; none if there is no journal."""
    for _, text in located_lines(path):
        if (line := parsed(_LINE, text)) is not None:
            yield line


def read_upload_state(path: Path) -> UploadState:
    """Return the state that the journal records; an empty state if there is no journal."""
    state = UploadState()
    for line in read_lines(path):
        state.apply(line)
    return state


@dataclass(frozen=True)
class StoredPart:
    """The part of a run that is in storage.

    Attributes:
        address: address of the run in storage.
        checkpoints: timesteps of the stored checkpoints, ascending.
        newest: timesteps of the newest stored checkpoint, or None.
        is_newest_safe: whether that one is at least as new as the newest checkpoint here.
        waiting: timesteps of the checkpoints that wait to be uploaded, newest first.
        waiting_bytes: upper bound of the bytes that those need.
    """

    address: str
    checkpoints: tuple[int, ...]
    newest: int | None
    is_newest_safe: bool
    waiting: tuple[int, ...]
    waiting_bytes: int


def stored_part(run_dir: RunDir) -> StoredPart | None:
    """Return the part of a run that is in storage; None if it was never uploaded."""
    state = read_upload_state(run_dir.upload_journal)
    if state.to is None:
        return None
    here = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    stored = tuple(sorted(state.committed))
    newest = stored[-1] if stored else None
    return StoredPart(
        address=f"{state.to}/{run_folder(run_dir.identity().id)}",
        checkpoints=stored,
        newest=newest,
        is_newest_safe=newest is not None and newest >= max(here, default=0),
        waiting=tuple(sorted(state.waiting, reverse=True)),
        waiting_bytes=sum(state.waiting.values()),
    )


class Journal(JsonLines):
    """The journal, open for appending by one process, and the state that it records.

    Raises:
        OSError: from every method, if the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.state = read_upload_state(path)
        super().__init__(path)

    def write(self, line: Line) -> None:
        """Append a line, sync it to the disk, and then apply it to the state."""
        self.append(line.model_dump_json(exclude_defaults=False))
        self.sync()
        self.state.apply(line)
