"""A process that kills what its parent left behind.

A cluster that we start consists of many processes that are not our own code. When we are killed,
some notice it late, or wait a minute for another one that has ended. The reaper kills them. It
finds them by their open files, since they overwrite their names and their environment. The reaper
runs this file alone, and so needs only Python's standard library.
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
    """Clean up a folder and its users when the block ends, or when this process does.

    On Linux, all other processes that have a file below the folder open are killed. Everywhere, the
    folder is deleted.
    """
    reaper = subprocess.Popen(
        [sys.executable, "-I", __file__, str(folder.resolve()), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C in the terminal must not reach it
    )
    assert reaper.stdin is not None
    try:
        yield
    finally:
        reaper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            reaper.wait(2 * _END_TIMEOUT_S)


def main() -> None:
    folder = sys.argv[1]
    parent = int(sys.argv[2])
    sys.stdin.buffer.read()  # until our parent closes it or ends
    deadline = time.monotonic() + _END_TIMEOUT_S
    while (left := _users(folder) - {parent}) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    shutil.rmtree(folder, ignore_errors=True)


def _users(folder: str) -> set[int]:
    """Return the processes with an open file below a folder; other users' cannot be inspected."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(_open_file(fd).startswith(f"{folder}/") for fd in (process / "fd").iterdir()):
                found.add(int(process.name))
    return found


def _open_file(descriptor: Path) -> str:
    """Return the path of an open file, or an empty string if it was closed meanwhile."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


if __name__ == "__main__":
    main()
