"""A process that ends what its parent has left, however that ends.

A cluster that we start consists of many processes of others. When we are killed, those that notice
it late, or wait a minute for one that has ended, must not stay: the reaper finds them by the files
that they have open, as they overwrite their names and their environment. It is this file, run by
itself, and so needs nothing but Python.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_END_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.1


@contextmanager
def reaping(folder: Path) -> Iterator[None]:
    """When the block ends, or this process does, all others that have a file of the folder open are
    killed, and the folder is deleted. Linux only; elsewhere only the folder is.
    """
    reaper = subprocess.Popen(
        [sys.executable, "-I", __file__, str(folder.resolve()), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C in the terminal is not for it
    )
    assert reaper.stdin is not None
    try:
        yield
    finally:
        reaper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            reaper.wait(2 * _END_TIMEOUT_S)


def main() -> None:
    folder, parent = sys.argv[1], int(sys.argv[2])
    sys.stdin.buffer.read()  # until our parent closes it, or is no more
    deadline = time.monotonic() + _END_TIMEOUT_S
    while (left := _users(folder) - {parent}) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    shutil.rmtree(folder, ignore_errors=True)


def _users(folder: str) -> set[int]:
    """Processes that have a file below it open; those of other users cannot be looked at."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(_open_file(fd).startswith(f"{folder}/") for fd in (process / "fd").iterdir()):
                found.add(int(process.name))
    return found


def _open_file(descriptor: Path) -> str:
    """Empty if it has been closed meanwhile."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


if __name__ == "__main__":
    main()
