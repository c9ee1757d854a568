"""A folder for what lives as long as its process, with a short path."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

# Sockets are to lie in it, and a socket's path has at most 107 characters: TMPDIR may be too long.
SHORT_PLACE = Path("/tmp")  # noqa: S108
_PREFIX = "game_rl-"


@contextmanager
def private_folder(place: Path = SHORT_PLACE) -> Iterator[Path]:
    """Of this user alone, deleted at the end; those of processes that were killed are, too."""
    for left in place.glob(f"{_PREFIX}*/lock"):
        with suppress(OSError, Timeout), FileLock(left, timeout=0):
            shutil.rmtree(left.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        with FileLock(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
