"""What is stored of a run, and under which names.

    blobs/ab/abcd…                        bytes named by their sha256; written once, never changed
    runs/ID/checkpoints/000000250000.json a manifest: each file of the run at that checkpoint
    runs/ID/videos.json                   clips, and what else came after the last checkpoint
    runs/ID/writer.json                   who writes to the run
    runs/ID/superseded/…                  manifests of a future that was trained again

A manifest is written when all its blobs are there, and names the files by their paths in the run
directory. `sha256sum` of a blob is its name.
"""

import re
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, JsonValue, ValidationError

from game_rl.config.saved import Saved
from game_rl.errors import StorageError
from game_rl.run_dir import RunIdentity

_Stored = TypeVar("_Stored", bound=Saved)
_Count = Annotated[int, Field(ge=0)]
_FOLDERS = ("checkpoints", "offline", "lake", "tensorboard", "game", "videos")
_FILES = ("run.json", "events.jsonl", "preflight.json", "footprint.json")
_CHECKPOINT = re.compile(r"runs/[0-9a-f]{32}/checkpoints/(\d{12})\.json")
RUN_ID = re.compile(r"[0-9a-f]{32}")


def _path(text: str) -> str:
    """A path that a run directory has; what is fetched never lands elsewhere."""
    parts = text.split("/")
    is_plain = all(part and not part.startswith(".") and part.isprintable() for part in parts)
    is_known = text in _FILES or (len(parts) > 1 and parts[0] in _FOLDERS)
    if not is_plain or not is_known or "\\" in text:
        raise ValueError("names no file of a run")
    return text


class Piece(Saved):
    """A blob."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    n_bytes: _Count


class StoredFile(Saved):
    """A file of the run: these blobs, one after the other."""

    path: Annotated[str, AfterValidator(_path)]
    pieces: tuple[Piece, ...]

    @property
    def n_bytes(self) -> int:
        return sum(piece.n_bytes for piece in self.pieces)


class RunManifest(Saved):
    """A run at one checkpoint, with its best one."""

    format: Literal[1] = 1
    run: RunIdentity
    timesteps: _Count
    saved: datetime
    """When the checkpoint was written, by the clock of who wrote it."""
    best_timesteps: int | None
    rom_sha256: str
    config: dict[str, JsonValue]
    """The run's at that checkpoint."""
    game_file: str | None
    """Of a game of the user's own, the path of its game.yaml among the files."""
    has_lake: bool
    """What the checkpoint needs of the Lake is among the files."""
    files: tuple[StoredFile, ...]

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)

    def blobs(self) -> dict[str, int]:
        """Bytes by sha256."""
        return {piece.sha256: piece.n_bytes for file in self.files for piece in file.pieces}

    def is_same_checkpoint(self, other: "RunManifest") -> bool:
        """Whether both have the same bytes of it; files that grow may differ."""
        return (self.run.id, self._checkpoint_files()) == (other.run.id, other._checkpoint_files())

    def _checkpoint_files(self) -> set[StoredFile]:
        return {file for file in self.files if file.path.startswith("checkpoints/")}


class StoredVideos(Saved):
    """What came after the last checkpoint."""

    format: Literal[1] = 1
    files: tuple[StoredFile, ...]


class WriterClaim(Saved):
    """Who writes to a run, or was the last to do so."""

    writer: str
    """Drawn by each copy of the run directory."""
    host: str
    pid: int
    epoch: _Count
    """How often the writer has changed."""
    is_active: bool
    """False: it has ended, with everything stored."""


def blob_name(sha256: str) -> str:
    return f"blobs/{sha256[:2]}/{sha256}"


def run_folder(run: str) -> str:
    return f"runs/{run}"


def manifest_name(run: str, timesteps: int) -> str:
    return f"runs/{run}/checkpoints/{timesteps:012d}.json"


def superseded_name(run: str, timesteps: int, epoch: int) -> str:
    return f"runs/{run}/superseded/{timesteps:012d}.{epoch}.json"


def timesteps_of(name: str) -> int | None:
    """Of a checkpoint's manifest; None: the name is of something else."""
    match = _CHECKPOINT.fullmatch(name)
    return None if match is None else int(match[1])


def parse_manifest(content: bytes, source: str) -> RunManifest:
    """Raise StorageError if `source`, where it is from, is damaged or of a newer version."""
    return parse_stored(RunManifest, content, source)


def parse_videos(content: bytes, source: str) -> StoredVideos:
    """As `parse_manifest`."""
    return parse_stored(StoredVideos, content, source)


def parse_stored(model: type[_Stored], content: bytes, source: str) -> _Stored:
    """Raise StorageError if `source`, where it is from, is damaged or of a newer version."""
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise StorageError(f"{source} {_damage(error)}") from None


def _damage(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"is damaged, or of another version of game_rl: {where}: {first['msg']}"
