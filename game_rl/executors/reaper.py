"""A process that ends what its parent has left, however that ends.

A cluster that we start consists of many processes of others. When we are killed, those that notice
it late, or wait a minute for one that has ended, must not stay: the reaper finds them by a variable
of their environment. It is this file, run by itself, and so needs nothing but Python.
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

REAPED_VARIABLE = "GAME_RL_REAPED"
"""In the environment: the folder with which this process, and all that it starts, ends."""
_END_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.1


@contextmanager
def reaping(folder: Path) -> Iterator[None]:
    """When the block ends, or this process does, whatever has the variable `GAME_RL_REAPED` with
    this folder is killed, and the folder deleted. Linux only; elsewhere only the folder is.
    """
    reaper = subprocess.Popen(
        [sys.executable, "-I", __file__, str(folder)],
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
    folder = sys.argv[1]
    sys.stdin.buffer.read()  # until our parent closes it, or is no more
    deadline = time.monotonic() + _END_TIMEOUT_S
    while (left := _marked(folder)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    shutil.rmtree(folder, ignore_errors=True)


def _marked(folder: str) -> list[int]:
    """Processes of ours that have the variable; of one that has ended nothing can be read."""
    wanted = f"{REAPED_VARIABLE}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    main()
