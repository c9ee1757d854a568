"""Who may change the files of a Lake: any number of writers, or one who rewrites what they wrote.

The locks are the kernel's, on `lake.json`, which is never replaced: they go with the process that
holds them. Readers need none.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from game_rl.errors import LakeError


class WriterLock:
    """Held by a writer from here to `release`.

    Raises:
        LakeError: somebody has the Lake alone.
    """

    def __init__(self, lake: Path) -> None:
        self._file = _locked(
            lake / "lake.json",
            fcntl.LOCK_SH,
            f"{lake} is being compacted; wait until that has ended, and start again",
        )

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


@contextmanager
def as_writer(lake: Path) -> Iterator[None]:
    """Change what belongs to one stream, beside writers of others.

    Raises:
        LakeError: somebody has the Lake alone.
    """
    lock = WriterLock(lake)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def alone(lake: Path) -> Iterator[None]:
    """Nobody writes while the block runs.

    Raises:
        LakeError: somebody does.
    """
    file = _locked(
        lake / "lake.json",
        fcntl.LOCK_EX,
        f"{lake} is being written or compacted by another process; a training's files can be "
        "merged when it has ended",
    )
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def in_turns(file: Path) -> Iterator[None]:
    """One process after the other; `file` is made, and stays."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, kind: int, otherwise: str) -> int:
    """A descriptor that holds the lock; network file systems want it open for writing."""
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise LakeError(otherwise) from None
    except BaseException:
        os.close(file)
        raise
    return file
