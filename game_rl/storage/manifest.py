"""The objects that storage holds of a run, and their names.

    blobs/ab/abcd…                        bytes named by their sha256; written once, never changed
    runs/ID/checkpoints/000000250000.json a manifest: each file of the run at that checkpoint
    runs/ID/videos.json                   clips and other files from after the last checkpoint
    runs/ID/writer.json                   the machine that writes to the run
    runs/ID/superseded/…                  manifests of checkpoints that were trained again

A manifest is written once all its blobs are there, and names the files by their paths in the run
directory. The name of a blob is its `sha256sum`.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, JsonValue

from game_rl.errors import StorageError
from game_rl.files.run_dir import RunIdentity
from game_rl.files.saved import Natural, Saved, Sha256, parse_saved

_Stored = TypeVar("_Stored", bound=Saved)
_OF_CHECKPOINTS = ("checkpoints", "offline")
_FOLDERS = (*_OF_CHECKPOINTS, "lake", "tensorboard", "game", "parts", "played", "videos")
_FILES = (
    *("run.json", "events.jsonl", "preflight.json", "footprint.json"),
    *("monitor.csv", "progress.csv", "wandb.jsonl"),
)
RUN_ID = re.compile(r"[0-9a-f]{32}")


def _is_below(path: str) -> bool:
    """Whether the path stays below its folder, so that no fetched file lands elsewhere."""
    parts = path.split("/")
    is_plain = all(part and not part.startswith(".") and part.isprintable() for part in parts)
    return is_plain and "\\" not in path


def _inside(path: str) -> str:
    if not _is_below(path):
        raise ValueError("is not a path below the folder")
    return path


def _of_a_run(path: str) -> str:
    folder, slash, _ = path.partition("/")
    is_known = path in _FILES or (slash and folder in _FOLDERS)
    if not _is_below(path) or not is_known:
        raise ValueError("names no file of a run")
    return path


class Piece(Saved):
    """A blob, which is a file or a part of one."""

    sha256: Sha256
    n_bytes: Natural


class StoredFile(Saved):
    """A file: the concatenation of its blobs."""

    path: Annotated[str, AfterValidator(_inside)]
    pieces: tuple[Piece, ...]

    @property
    def n_bytes(self) -> int:
        return sum(piece.n_bytes for piece in self.pieces)

    @property
    def unit(self) -> str | None:
        """Folder of the file's checkpoint, which appears in one rename; None for other files."""
        folder, _, _ = self.path.rpartition("/")
        parts = folder.split("/")
        is_checkpoint = len(parts) > 1 and parts[-2] in _OF_CHECKPOINTS and parts[-1].isdecimal()
        return folder if is_checkpoint else None


class RunFile(StoredFile):
    """A file of a run, at a path that a run directory can have."""

    path: Annotated[str, AfterValidator(_of_a_run)]


def blobs_of(files: Iterable[StoredFile]) -> dict[str, int]:
    """Return the size in bytes of each blob, by sha256."""
    return {piece.sha256: piece.n_bytes for file in files for piece in file.pieces}


class RunManifest(Saved):
    """A run at one checkpoint, together with its best checkpoint."""

    format: Literal[1] = 1
    run: RunIdentity
    timesteps: Natural
    saved: datetime
    """When the checkpoint was written, by the clock of the machine that trained."""
    best_timesteps: int | None
    rom_sha256: str
    config: dict[str, JsonValue]
    """The run's config at that checkpoint."""
    game_file: str | None
    """Path of game.yaml among the files, or None for a bundled game."""
    has_lake: bool
    """Whether the files include the part of the Lake that the checkpoint needs."""
    files: tuple[RunFile, ...]

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)

    def is_same_checkpoint(self, other: "RunManifest") -> bool:
        """Whether the checkpoint's files are the same in both; files that grow may differ."""
        return (self.run.id, self._checkpoint_files()) == (other.run.id, other._checkpoint_files())

    def _checkpoint_files(self) -> set[RunFile]:
        return {file for file in self.files if file.path.startswith("checkpoints/")}


class StoredVideos(Saved):
    """Files from after the last checkpoint."""

    format: Literal[1] = 1
    files: tuple[RunFile, ...]


def blob_name(sha256: str) -> str:
    return f"blobs/{sha256[:2]}/{sha256}"


def run_folder(run: str) -> str:
    return f"runs/{run}"


def parse_stored(model: type[_Stored], content: bytes, source: str) -> _Stored:
    """Parse a stored model.

    Args:
        source: address of the object, for messages.

    Raises:
        StorageError: the content is damaged, or from another version of game_rl.
    """
    return parse_saved(
        model,
        content,
        source,
        error=StorageError,
        fault="is damaged, or from another version of game_rl",
        way_out="fetch another checkpoint or generation",
    )


def as_json(manifest: Saved) -> bytes:
    """Serialise a model; equal models give equal bytes."""
    return manifest.model_dump_json(indent=1).encode()


class FolderTree(Saved):
    """Files, with their paths below one folder."""

    format: Literal[1] = 1
    files: tuple[StoredFile, ...]

    def part(self, name: str) -> "FolderTree":
        """Return the tree of the files at this path or below it."""
        found = (f for f in self.files if f.path == name or f.path.startswith(f"{name}/"))
        return FolderTree(files=tuple(found))


class GenerationManifest(FolderTree):
    """All of an experiment's folder, as it was after a generation.

    Attributes:
        kind: kind of the experiment, such as population.
        game: the game, as the members' config names it.
        saved: when the generation was sent, by the clock of the machine that sent it.
    """

    kind: str = "population"
    game: str | None = None
    saved: datetime | None = None


def place_of(experiment: str) -> str:
    """Return the folder of an experiment, below the address."""
    return f"experiments/{experiment}"
