"""Locks on a Lake: many writers share it, or one process rewrites its files alone.

They are kernel locks on `lake.json`, which is never replaced, so they end with the process that
holds them. Readers need no lock.
"""

from io import FileIO
from pathlib import Path

from game_rl.errors import LakeError
from game_rl.run_dir import file_lock


def shared_lock(lake: Path) -> FileIO:
    """Take the lock with which streams are written or changed beside others, until it is closed.

    Raises:
        LakeError: another process holds the Lake alone.
    """
    busy = f"{lake} is being compacted; wait until that has finished, then start again"
    return _locked(lake, busy, shared=True)


def exclusive_lock(lake: Path) -> FileIO:
    """Take the lock under which no other process can write the Lake, until it is closed.

    Raises:
        LakeError: another process holds a lock, shared or alone.
    """
    busy = (
        f"{lake} is being written or compacted by another process; wait until that has ended, "
        "then start again"
    )
    return _locked(lake, busy, shared=False)


def _locked(lake: Path, busy: str, *, shared: bool) -> FileIO:
    try:
        return file_lock(lake / "lake.json", shared=shared)
    except BlockingIOError:
        raise LakeError(busy) from None
