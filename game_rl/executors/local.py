"""Jobs as processes of this machine."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from game_rl.executors.executor import Ended, Job
from game_rl.system.machine import CPUS_VARIABLE
from game_rl.system.parent_death import PARENT_VARIABLE

_LOOK_EVERY_S = 0.05  # waking for 16 processes so often takes 0.2 % of a core
_SHOWN_BYTES = 4_000
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalExecutor:
    """Processes in groups of their own, so that a Ctrl-C in the terminal reaches only us.

    Each ends with this process, even if that is killed, and its workers with it.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}

    @property
    def slots(self) -> int:
        return self._slots

    def start(self, job: Job) -> None:
        assert len(self._running) < self._slots
        assert job.name not in self._running
        job.output.parent.mkdir(parents=True, exist_ok=True)
        with job.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "game_rl", *job.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(job.cpus),
                start_new_session=True,
            )
        self._running[job.name] = (job, process)

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        deadline = time.monotonic() + timeout_s
        while True:
            ended = [one for name in list(self._running) if (one := self._ended(name)) is not None]
            left_s = deadline - time.monotonic()
            if ended or left_s <= 0:
                return ended
            time.sleep(min(_LOOK_EVERY_S, left_s))

    def ask_to_stop(self) -> None:
        for _, process in self._running.values():
            process.send_signal(signal.SIGTERM)  # to the training alone: it ends its workers

    def close(self) -> None:
        for _, process in self._running.values():
            _kill_group(process.pid)
        for _, process in self._running.values():
            process.wait()
        self._running.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ended(self, name: str) -> Ended | None:
        job, process = self._running[name]
        # looked at, not reaped: its id is nobody else's while its group is killed
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        _kill_group(process.pid)
        code = process.wait()
        del self._running[name]
        return Ended(job, code, platform.node(), _tail(job) if code else "")


def _environment(cpus: int) -> dict[str, str]:
    own = {CPUS_VARIABLE: str(cpus), PARENT_VARIABLE: str(os.getpid())}
    return {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(cpus)), **own}


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _tail(job: Job) -> str:
    with job.output.open("rb") as file:
        file.seek(max(0, job.output.stat().st_size - _SHOWN_BYTES))
        return file.read().decode(errors="replace").strip()
