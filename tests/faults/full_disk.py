"""A disk of a few megabytes, which can be filled; it needs the right to mount a tmpfs."""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOM = "256m"  # more than the reserve at which a training saves and ends


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs at `path`."""

    path: Path

    def fill(self) -> None:
        """Leave no byte free."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (2**20, 2**10, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self) -> None:
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mount a disk inside the block; raise PermissionError where that is not allowed."""
    path.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", str(path))
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        raise PermissionError(f"a tmpfs cannot be mounted: {error}") from error
    try:
        yield SmallDisk(path)
    finally:
        _run("umount", "--lazy", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
