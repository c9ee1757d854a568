"""What carries out jobs: the interface of executors, the local one, and the choice of one.

A job trains a run directory to a timestep and leaves a result in a file. Whenever its end is
unknown, it may be carried out again, here or elsewhere: a job that finds its result does nothing.
So an executor needs no knowledge of training, and nothing is lost if it loses its state.
"""

import os
import platform
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from game_rl.config.experiments.executor_config import (
    ExecutorConfig,
    LocalExecutorConfig,
    RayExecutorConfig,
)
from game_rl.errors import UsageError
from game_rl.files.run_dir import CLAIM_VARIABLE, EXPERIMENT_VARIABLE
from game_rl.system.child_process import LeashedProcess
from game_rl.system.fork_server import (
    ForkServer,
    ForkServerError,
    ForkServerUnavailableError,
    OwnProcess,
    Process,
)
from game_rl.system.packages import check_extra, load_with_extra
from game_rl.system.processes import CAN_FORK, share_environment


@dataclass(frozen=True)
class Job:
    """One command: `python -m MODULE REQUEST`.

    Attributes:
        name: name for people, unique among the jobs under way.
        request: file that says what is to be done, in the experiment's folder.
        output: file to which its output is appended.
        cpus: number of CPUs for torch's threads, on which the rounding of its numbers depends.
        claim: claim under which it writes to its run (see `game_rl.files.run_dir`), or None.
        module: module of the command.
        reads: folders of the experiment that it needs, apart from its request.
        writes: files and folders that it writes, apart from its output.
        experiment: the experiment's folder, as messages to the user name it; None without one.
    """

    name: str
    request: Path
    output: Path
    cpus: int = 1
    claim: str | None = None
    module: str = "game_rl.experiments.jobs"
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    experiment: str | None = None


@dataclass(frozen=True)
class CompletedJob:
    """How a job's process has ended.

    Attributes:
        code: its exit code, or minus the number of the signal that killed it.
        where: the machine that it ran on.
        text: the end of its output, if it failed.
        cause: cause of its death, if more than the code is known.
    """

    job: Job
    code: int
    where: str
    text: str = ""
    cause: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether a signal ended it, saved or not, so that the job can be continued."""
        return self.code < 0 or self.code > 128


class Executor(Protocol):
    """Carries out jobs in parallel; a context manager that leaves nothing running."""

    @property
    def slots(self) -> int:
        """Number of jobs that it accepts at once."""

    def start(self, job: Job) -> None:
        """Start a job; only while fewer than `slots` are under way."""

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:
        """Return the jobs that ended since the last call; wait for one until the timeout."""

    def ask_to_stop(self) -> None:
        """Have all jobs save and end soon; `wait` reports each when it has."""

    def close(self) -> None:
        """End all jobs at once; may be called twice."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The resources that members need, as the preflight forecasts them.

    Attributes:
        slots: number of members that fit on this machine at once.
        members: number of members in all.
        cpus: CPUs of each member.
        ram_bytes: peak memory of each member.
        gpus: GPUs of each member; below 1, a share of one.
        patience_s: time that a member may take to save and end.
        folder: the experiment's folder.
        disk_bytes: disk space of each member's run.
        game: game of the members, as their config names it.
        warn: called with the text of a warning for the user.
    """

    slots: int
    members: int
    cpus: int
    ram_bytes: int
    gpus: float
    patience_s: float
    folder: Path
    disk_bytes: int = 0
    game: str = ""
    warn: Callable[[str], None]


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
            ended = [
                CompletedJob(job, code, platform.node(), process.tail())
                for job, process in self._running.values()
                if (code := process.code()) is not None
            ]
            for one in ended:
                del self._running[one.job.name]
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


def make_executor(config: ExecutorConfig, demand: Demand) -> AbstractContextManager[Executor]:
    """Make the executor; raise UsageError if a package that it needs is not installed."""
    if isinstance(config, LocalExecutorConfig):
        return LocalExecutor(demand.slots)
    return _ray_executor(config)(config, demand)


def check_installed(config: ExecutorConfig) -> None:
    """Raise UsageError as `make_executor` would, before anything is written."""
    if isinstance(config, RayExecutorConfig):
        _ray_executor(config)


_Make = Callable[[RayExecutorConfig, Demand], AbstractContextManager[Executor]]


def _ray_executor(config: RayExecutorConfig) -> _Make:
    if not hasattr(os, "fork"):  # as on Windows: nothing there ends all processes of a cluster
        raise UsageError(
            "executor.kind: ray does not work on this system, which cannot fork processes; set "
            "executor.kind to local"
        )
    if config.starts_cluster and "ray" not in sys.modules:
        # Ray reads these once, at import; without them it writes a token to the user's home folder
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=uuid.uuid4().hex)
    needed_by = "executor.kind: ray"
    way_out = "set executor.kind to local"
    check_extra("ray", needed_by, way_out=way_out)
    # imported by name: local members must neither need Ray nor wait for its import
    module = load_with_extra(
        "game_rl.experiments.executors.ray", "obstore", needed_by, way_out=way_out
    )
    return cast("_Make", module.ray_executor)
