"""The files of a run at a checkpoint, each with its sha256."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from game_rl.checkpoints.checkpoint_files import MANIFEST, Manifest, read_manifest, read_verified
from game_rl.errors import CheckpointError, LakeError
from game_rl.events.event_log import checkpoint_times, read_events
from game_rl.files.run_dir import RunDir, RunIdentity
from game_rl.files.saved import file_sha256
from game_rl.lake.mark import Mark, MarkedSegment
from game_rl.lake.segment import SHELVED
from game_rl.loggers.log_files import appended_files
from game_rl.storage.blobs import BlobSource, growing_pieces
from game_rl.storage.faults import LostFileError
from game_rl.storage.manifest import Piece, RunFile, RunManifest
from game_rl.storage.object_store import CHUNK_BYTES
from game_rl.storage.upload_settings import UploadSettings

_TRAILER_BYTES = 40  # end of a segment: the sha256 of everything before it, and a magic word


@dataclass
class Contents:
    """The files that make up a run at a checkpoint.

    Attributes:
        sources: where each piece lies, by sha256.
    """

    files: list[RunFile] = field(default_factory=list)
    sources: dict[str, BlobSource] = field(default_factory=dict)

    def add(self, path: str, *sources: BlobSource) -> None:
        pieces = tuple(source.piece for source in sources)
        self.files.append(RunFile(path=path, pieces=pieces))
        self.sources |= {source.piece.sha256: source for source in sources}

    def add_whole(self, path: str, file: Path, sha256: str, n_bytes: int) -> None:
        self.add(path, BlobSource(file, 0, Piece(sha256=sha256, n_bytes=n_bytes)))

    def add_growing(self, path: str, file: Path, n_bytes: int | None = None) -> None:
        """Add the first `n_bytes` of a file that grows, or all of its current bytes if None."""
        self.add(path, *growing_pieces(file, file.stat().st_size if n_bytes is None else n_bytes))


SegmentHashes = dict[str, tuple[str, int]]
"""sha256 and size in bytes of whole segments, by name."""


def checkpoint_contents(
    settings: UploadSettings, timesteps: int, hashes: SegmentHashes
) -> tuple[RunManifest, Contents]:
    """Return the manifest and the files of a run at this checkpoint.

    Args:
        hashes: hashes of segments that were read before. Those that are read now are added.

    Raises:
        LostFileError: a file of the run is gone or damaged.
    """
    run_dir = RunDir(settings.run_dir)
    try:
        return _checkpoint_contents(settings, run_dir, timesteps, hashes)
    except (CheckpointError, LakeError) as error:
        is_here = run_dir.checkpoint(timesteps).is_dir()
        raise LostFileError(str(error), is_damaged=is_here) from None
    except OSError as error:
        raise LostFileError(f"{error.filename}: {error.strerror}") from None


def _checkpoint_contents(
    settings: UploadSettings, run_dir: RunDir, timesteps: int, hashes: SegmentHashes
) -> tuple[RunManifest, Contents]:
    contents = Contents()
    path = run_dir.checkpoint(timesteps)
    files = read_manifest(path)
    state = json.loads(read_verified(path, files, "state.json"))
    _add_checkpoint(contents, path, files)
    best = state["best"]
    if best is not None:
        offline = int(best.get("offline_gradient_steps", 0))
        best_path = run_dir.checkpoint(best["timesteps"])
        if offline:  # it is from before the first timestep
            best_path = run_dir.offline.checkpoint(offline)
        if best_path != path and best_path.is_dir():
            _add_checkpoint(contents, best_path, read_manifest(best_path))
    has_lake = "lake" in settings.upload.what and "lake.json" in files.files
    if has_lake and settings.lake is not None:
        mark = json.loads(read_verified(path, files, "lake.json"))["mark"]
        _add_lake(contents, settings.lake, Mark.from_json(mark, source=path), hashes)
    _add_reports(contents, settings, run_dir, int(state.get("events_bytes", 0)))
    manifest = RunManifest(
        run=RunIdentity.model_validate_json(run_dir.identity_file.read_bytes()),
        timesteps=timesteps,
        saved=_saved(run_dir, timesteps),
        best_timesteps=None if best is None else int(best["timesteps"]),
        rom_sha256=state["rom_sha256"],
        config=state["config"],
        game_file=settings.game.game_file,
        has_lake=has_lake and settings.lake is not None,
        files=tuple(contents.files),
    )
    return manifest, contents


def _saved(run_dir: RunDir, timesteps: int) -> datetime:
    """Return when a checkpoint was written, in whole seconds."""
    told = checkpoint_times(read_events(run_dir)).get(timesteps)
    if told is not None:
        return told.astimezone(UTC).replace(microsecond=0)
    return datetime.fromtimestamp(
        int((run_dir.checkpoint(timesteps) / MANIFEST).stat().st_mtime), UTC
    )


def video_contents(run_dir: RunDir) -> Contents:
    """Return the clips, and the comparison of forecast and measured memory and disk."""
    contents = Contents()
    for file in sorted(run_dir.videos.glob("*.*")):
        if not file.name.startswith("."):
            contents.add_growing(f"videos/{file.name}", file)
    if run_dir.footprint.exists():
        contents.add_growing(run_dir.footprint.name, run_dir.footprint)
    return contents


def _add_checkpoint(contents: Contents, path: Path, files: Manifest) -> None:
    folder = f"{path.parent.name}/{path.name}"
    for name, entry in files.files.items():
        contents.add_whole(f"{folder}/{name}", path / name, entry.sha256, entry.bytes)
    manifest = path / MANIFEST
    n_bytes = manifest.stat().st_size
    contents.add_whole(f"{folder}/{MANIFEST}", manifest, file_sha256(manifest), n_bytes)


def _add_lake(contents: Contents, lake: Path, mark: Mark, hashes: SegmentHashes) -> None:
    contents.add_growing("lake/lake.json", lake / "lake.json")
    for marked in mark.segments:
        path = lake / marked.name
        if not path.exists():
            path = path.with_suffix(SHELVED)
        is_new = marked.name not in hashes
        if is_new:
            hashes[marked.name] = _hashed_segment(path, marked)
        sha256, n_bytes = hashes[marked.name]
        piece = Piece(sha256=sha256, n_bytes=n_bytes)
        contents.add(
            f"lake/{marked.name}", BlobSource(path, 0, piece, marked.name, was_read=is_new)
        )


def _hashed_segment(path: Path, marked: MarkedSegment) -> tuple[str, int]:
    """Return sha256 and size of a whole segment; the mark has the sha256 of all but its trailer."""
    digest = hashlib.sha256()
    left = marked.n_bytes - _TRAILER_BYTES
    with path.open("rb") as file:
        while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
            digest.update(chunk)
            left -= len(chunk)
        own = digest.hexdigest()
        end = file.read(_TRAILER_BYTES + 1)
    digest.update(end)
    if left or own != marked.sha256 or len(end) != _TRAILER_BYTES:
        raise LostFileError(f"{path} is damaged", is_damaged=True)
    return digest.hexdigest(), marked.n_bytes


def _add_reports(
    contents: Contents, settings: UploadSettings, run_dir: RunDir, events_bytes: int
) -> None:
    """Add what is outside of the checkpoint; a fetch cuts curves to their length at the checkpoint.

    Tables are not added, since the checkpoint holds them.
    """
    contents.add_growing("run.json", run_dir.identity_file)
    if run_dir.preflight.exists():
        contents.add_growing("preflight.json", run_dir.preflight)
    if events_bytes and run_dir.events.exists():
        contents.add_growing("events.jsonl", run_dir.events, events_bytes)
    for file in sorted(run_dir.tensorboard.glob("events.out.tfevents.*")):
        contents.add_growing(f"tensorboard/{file.name}", file)
    for file in (*appended_files(run_dir), run_dir.progress):
        if file.exists():
            contents.add_growing(file.name, file)
    for file in sorted(run_dir.played.glob("*.json")):
        contents.add_growing(f"{run_dir.played.name}/{file.name}", file)
    for path, file in settings.game.paths.items():
        contents.add_growing(path, file)
