"""Child processes in a fresh interpreter: one that can be stopped, one that talks in lines."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
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


_LOWEST_PRIORITY: int = getattr(subprocess, "IDLE_PRIORITY_CLASS", 0)  # Windows

# `import game_rl` registers the games with Gymnasium, which takes 17 MB that such a process does
# not need. A bare package of the same name finds the same modules.
_START = """\
import importlib, sys, types
package = types.ModuleType("game_rl")
package.__path__ = [sys.argv[1]]
sys.modules["game_rl"] = package
sys.exit(importlib.import_module(sys.argv[2]).main(*sys.argv[3:]))
"""


class LineProcess:
    """A fresh interpreter with the lowest priority for the disk; both sides write lines.

    Args:
        module: our module whose `main` it runs.
        argument: of `main`.
        settings: its first line.
        hear: called with each line of its output, in a thread.
    """

    def __init__(
        self, module: str, argument: str, settings: str, hear: Callable[[str], None]
    ) -> None:
        self._process = started(module, argument)
        self._reader = threading.Thread(target=self._read, args=(hear,), daemon=True)
        self._reader.start()
        self.tell(settings)

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def tell(self, line: str) -> None:
        with suppress(OSError, ValueError):  # it has ended, and has given the reason
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()  # it stays open: its end says that this process is gone

    def end(self, *, heard_within_s: float = 5.0) -> None:
        """End the process, even if it has more to send; may be called twice.

        Args:
            heard_within_s: how long to wait for its last lines.
        """
        self._process.kill()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._reader.join(heard_within_s)

    def _read(self, hear: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                hear(line)


def started(module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a process that runs `main` of one of our modules, with pipes for input and output."""
    package = Path(__file__).parents[1]
    idle = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return subprocess.Popen(
        [*idle, sys.executable, "-c", _START, str(package), module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # libraries may print secrets there
        encoding="utf-8",
        env={
            **os.environ,
            **python_variables(),
            "PYTHONIOENCODING": "utf-8",
        },  # whatever this terminal's is
        creationflags=_LOWEST_PRIORITY,
    )
