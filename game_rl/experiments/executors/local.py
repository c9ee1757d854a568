"""Jobs as processes of this machine."""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from game_rl.experiments.executors.executor import CompletedJob, Job
from game_rl.files.run_dir import CLAIM_VARIABLE, EXPERIMENT_VARIABLE
from game_rl.system.fork_server import (
    ForkServer,
    ForkServerError,
    ForkServerUnavailableError,
    OwnProcess,
    Process,
)
from game_rl.system.leashed_process import LeashedProcess
from game_rl.system.processes import CAN_FORK, share_environment

_IMPORTED = ("game_rl.experiments.jobs.member_jobs",)  # most of the time in which a job starts


class JobProcess:
    """A job's process, in its own session, so that a Ctrl-C in the terminal reaches only us.

    With its workers, it ends with the process that started it, even if that one is killed.

    Args:
        folder: folder that it starts in, or None for the current one.
        environment: environment that it inherits, apart from the variables that its job sets.
        server: fork server that forks it, in the current folder, or None for a fresh interpreter.
    """

    def __init__(
        self,
        job: Job,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        server: ForkServer | None = None,
    ) -> None:
        self._code: int | None = None
        self._output = job.output if folder is None else folder / job.output
        self._output.parent.mkdir(parents=True, exist_ok=True)
        arguments = [str(job.request)]
        own = job_environment(job, environment)
        with self._output.open("ab") as file:
            self._process: Process
            if server is None:
                start = OwnProcess if CAN_FORK else LeashedProcess
                self._process = start(job.module, arguments, own, file.fileno(), folder=folder)
            else:
                self._process = server.fork(job.module, arguments, own, file.fileno())

    @property
    def pid(self) -> int:
        return self._process.pid

    def code(self) -> int | None:
        """Return its exit code, or minus the number of a signal, or None while it runs.

        Once it has ended, this also kills the rest of its process group.
        """
        if self._code is None and not self._process.has_ended():
            return None
        return self.kill()

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit code, or None if it still runs after the timeout."""
        deadline = time.monotonic() + timeout_s
        while (code := self.code()) is None and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return code

    def ask_to_stop(self) -> None:
        """Have the training save and end, and with it its workers."""
        if self._code is None:
            self._process.ask_to_stop()

    def begin_to_kill(self) -> None:
        if self._code is None:
            self._process.begin_to_kill()

    def kill(self) -> int:
        """Kill it and its process group at once, and return its exit code."""
        if self._code is None:
            self._code = self._process.kill_and_wait()
        return self._code

    def tail(self) -> str:
        """Return the end of its output if it has failed, or an empty string."""
        if not self._code:
            return ""
        with self._output.open("rb") as file:
            file.seek(max(0, self._output.stat().st_size - _SHOWN_BYTES))
            return file.read().decode(errors="replace").strip()


class LocalExecutor(AbstractContextManager["LocalExecutor"]):
    """Runs jobs as processes that, with their workers, end with this one, even if it is killed.

    Where possible, a fork server forks them. There is one for each number of CPUs.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._running: dict[str, tuple[Job, JobProcess]] = {}
        self._servers: dict[int, ForkServer | None] = {}

    def start(self, job: Job) -> None:
        assert len(self._running) < self.slots
        assert job.name not in self._running
        self._running[job.name] = (job, self._started(job))

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:
        deadline = time.monotonic() + timeout_s
        while True:
            ended = [one for name in list(self._running) if (one := self._ended(name)) is not None]
            left_s = deadline - time.monotonic()
            if ended or left_s <= 0:
                return ended
            time.sleep(min(LOOK_EVERY_S, left_s))

    def ask_to_stop(self) -> None:
        for _, process in self._running.values():
            process.ask_to_stop()

    def close(self) -> None:
        for _, process in self._running.values():
            process.begin_to_kill()  # signal all of them before waiting for the first
        for _, process in self._running.values():
            process.kill()
        self._running.clear()
        for server in self._servers.values():
            if server is not None:
                server.close()
        self._servers.clear()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self, job: Job) -> JobProcess:
        try:
            if job.cpus not in self._servers:
                self._servers[job.cpus] = ForkServer(_IMPORTED, job_environment(job))
            return JobProcess(job, server=self._servers[job.cpus])
        except ForkServerUnavailableError:
            self._servers[job.cpus] = None
        except ForkServerError:
            del self._servers[job.cpus]  # the next job gets another one
        return JobProcess(job)

    def _ended(self, name: str) -> CompletedJob | None:
        job, process = self._running[name]
        code = process.code()
        if code is None:
            return None
        del self._running[name]
        return CompletedJob(job, code, platform.node(), process.tail())


LOOK_EVERY_S = 0.05  # polling 16 processes this often takes 0.2 % of a core
_SHOWN_BYTES = 4_000


def job_environment(job: Job, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a job's process, except for `PARENT_VARIABLE`.

    An inherited claim or experiment is removed: a job that starts jobs itself has others.
    """
    of_job = {CLAIM_VARIABLE: job.claim, EXPERIMENT_VARIABLE: job.experiment}
    own = {name: value for name, value in inherited.items() if name not in of_job}
    own |= share_environment(job.cpus)
    return own | {name: value for name, value in of_job.items() if value is not None}
