"""Locks on the files of a Lake: many writers share it, or one process rewrites the files alone.

They are kernel locks on `lake.json`, which is never replaced, so they end with the process that
holds them. Readers need no lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from game_rl.errors import LakeError


class WriterLock:
    """A shared lock that a writer holds until `release`.

    Raises:
        LakeError: another process holds the Lake alone.
    """

    def __init__(self, lake: Path) -> None:
        self._file = _locked(
            lake / "lake.json",
            fcntl.LOCK_SH,
            f"{lake} is being compacted; wait until that has finished, then start again",
        )

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


@contextmanager
def shared_lock(lake: Path) -> Iterator[None]:
    """Hold the shared lock in the block, to change one stream while others are being written.

    Raises:
        LakeError: another process holds the Lake alone.
    """
    lock = WriterLock(lake)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def exclusive_lock(lake: Path) -> Iterator[None]:
    """Hold the Lake alone in the block: no other process can write it.

    Raises:
        LakeError: another process holds a lock, shared or alone.
    """
    file = _locked(
        lake / "lake.json",
        fcntl.LOCK_EX,
        f"{lake} is being written or compacted by another process; wait until that has ended, "
        "then start again",
    )
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def in_turns(file: Path) -> Iterator[None]:
    """Let one process at a time into the block; `file` is created if necessary, and stays."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, kind: int, otherwise: str) -> int:
    """Return a descriptor that holds the lock; network file systems need it open for writing."""
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
