"""Every path of a run, and writing that leaves a file whole or absent."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunDir:
    """The directory of one run."""

    root: Path

    @property
    def config(self) -> Path:
        """The config as resolved; its presence makes a directory a run."""
        return self.root / "config.yaml"

    @property
    def preflight(self) -> Path:
        return self.root / "preflight.json"

    @property
    def footprint(self) -> Path:
        """Predicted against measured memory and disk."""
        return self.root / "footprint.json"

    @property
    def evaluations(self) -> Path:
        return self.root / "eval.csv"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def best(self) -> Path:
        """The checkpoint with the best evaluation so far."""
        return self.root / "best"

    @property
    def videos(self) -> Path:
        return self.root / "videos"

    def checkpoint(self, timesteps: int) -> Path:
        return self.checkpoints / f"{timesteps:012d}"

    def checkpoints_newest_first(self) -> list[Path]:
        if not self.checkpoints.is_dir():
            return []
        found = [p for p in self.checkpoints.iterdir() if p.is_dir() and p.name.isdecimal()]
        return sorted(found, key=lambda p: int(p.name), reverse=True)

    def exists(self) -> bool:
        return self.config.is_file()

    def size_bytes(self) -> int:
        """Sum of the sizes of all files of the run."""
        return sum(p.stat().st_size for p in self.root.rglob("*") if p.is_file())


def write_atomic(path: Path, content: str | bytes) -> None:
    """Put `content` at `path` in one rename: readers see the old file or the new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Fill the yielded directory; it becomes `path`, fsynced and whole, when the block ends.

    If the block raises, nothing is left. A directory that already stands at `path` is replaced
    after the new one is complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            _sync_file(file)
        sync_directory(temporary)
        _move_into_place(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_directory(path.parent)


def _move_into_place(temporary: Path, path: Path) -> None:
    if not path.exists():
        temporary.rename(path)
        return
    old = path.with_name(f".{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)
    temporary.rename(path)
    shutil.rmtree(old)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable; a no-op where directories cannot be opened (Windows)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
