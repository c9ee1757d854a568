"""A job as a process of this machine, wherever its executor is."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from game_rl.claims import CLAIM_VARIABLE
from game_rl.executors.executor import Job
from game_rl.system.machine import CPUS_VARIABLE
from game_rl.system.parent_death import PARENT_VARIABLE

LOOK_EVERY_S = 0.05  # waking for 16 processes so often takes 0.2 % of a core
_SHOWN_BYTES = 4_000
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class JobProcess:
    """A process in a session of its own, so that a Ctrl-C in the terminal reaches only us.

    It ends with the process that started it, even if that is killed, and its workers with it.

    Args:
        folder: that it starts in; None: the current one.
        environment: that it inherits, beside what its job sets.
    """

    def __init__(
        self,
        job: Job,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._code: int | None = None
        output = job.output if folder is None else folder / job.output
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", job.module, *map(str, job.arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**_inherited(environment), **_own_environment(job)},
                start_new_session=True,
            )
        self._output = output

    @property
    def pid(self) -> int:
        return self._process.pid

    def code(self) -> int | None:
        """Its exit code, below 0 that of a signal; None: it runs. With it, its group has ended."""
        if self._code is not None:
            return self._code
        # looked at, not reaped: its id is nobody else's while its group is killed
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        return self.kill()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, or None if it still runs then."""
        deadline = time.monotonic() + timeout_s
        while (code := self.code()) is None and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return code

    def ask_to_stop(self) -> None:
        """Have the training save and end: it ends its workers."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> int:
        """End it and all its group at once; its exit code."""
        if self._code is None:
            kill_group(self.pid)
            self._code = self._process.wait()
        return self._code

    def tail(self) -> str:
        """The end of what it has printed, if it has failed."""
        if not self._code:
            return ""
        with self._output.open("rb") as file:
            file.seek(max(0, self._output.stat().st_size - _SHOWN_BYTES))
            return file.read().decode(errors="replace").strip()


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the claim of a job that starts jobs itself: it is to another run."""
    return {name: value for name, value in environment.items() if name != CLAIM_VARIABLE}


def _own_environment(job: Job) -> dict[str, str]:
    own = {CPUS_VARIABLE: str(job.cpus), PARENT_VARIABLE: str(os.getpid())}
    if job.claim is not None:
        own[CLAIM_VARIABLE] = job.claim
    return {**dict.fromkeys(_THREAD_VARIABLES, str(job.cpus)), **own}
