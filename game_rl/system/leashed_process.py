"""A child process that ends with this one and can be asked to stop, on every system."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from game_rl.system.processes import LEASH, PARENT_VARIABLE, python_variables

_OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # Windows


class LeashedProcess:
    """A child process in a fresh interpreter, held by its standard input.

    It ends when that is closed, which also happens when this process is killed. It must call
    `end_with_parent`. A Ctrl-C in the terminal does not reach it.

    Args:
        environment: whole environment of the child, except for `PARENT_VARIABLE`.
        output: descriptor of the file for its output.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        *,
        folder: Path | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**environment, **python_variables(environment), PARENT_VARIABLE: LEASH},
            start_new_session=os.name == "posix",
            creationflags=_OWN_GROUP,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ask_to_stop(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended
            self._process.stdin.write(b"\n")

    def begin_to_kill(self) -> None:
        self._process.kill()

    def kill_and_wait(self) -> int:
        """Kill it and its children, if it has not ended, and return its exit code.

        Children of a process that has ended notice that by themselves.
        """
        children: list[psutil.Process] = []
        with suppress(psutil.Error):
            if self._process.poll() is None:
                children = psutil.Process(self.pid).children(recursive=True)
        self._process.kill()
        for child in children:
            with suppress(psutil.Error):
                child.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait()
