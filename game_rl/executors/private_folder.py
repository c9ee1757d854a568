"""A temporary folder with a short path, which lives as long as its process."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

# It will hold sockets, whose paths have at most 107 characters, so TMPDIR may be too long.
SHORT_PLACE = Path("/tmp")  # noqa: S108
_PREFIX = "game_rl-"


@contextmanager
def private_folder(place: Path = SHORT_PLACE) -> Iterator[Path]:
    """Make a folder that only this user can read, and delete it at the end.

    Folders that killed processes left in `place` are deleted first.
    """
    for left in place.glob(f"{_PREFIX}*/lock"):
        with suppress(OSError, Timeout), FileLock(left, timeout=0):
            shutil.rmtree(left.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        with FileLock(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
