"""The executor whose jobs are processes of this machine."""

import platform
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from game_rl.executors.executor import Ended, Job
from game_rl.executors.job_process import LOOK_EVERY_S, JobProcess, job_environment
from game_rl.executors.nursery import NoNurseryError, Nursery, NurseryError


class LocalExecutor:
    """Runs jobs as processes that, with their workers, end with this one, even if it is killed.

    Where possible, a nursery forks them. There is one nursery for each number of CPUs.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._running: dict[str, tuple[Job, JobProcess]] = {}
        self._nurseries: dict[int, Nursery | None] = {}

    @property
    def slots(self) -> int:
        return self._slots

    def start(self, job: Job) -> None:
        assert len(self._running) < self._slots
        assert job.name not in self._running
        self._running[job.name] = (job, self._started(job))

    def wait(self, timeout_s: float) -> Sequence[Ended]:
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
        for nursery in self._nurseries.values():
            if nursery is not None:
                nursery.close()
        self._nurseries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self, job: Job) -> JobProcess:
        try:
            if job.cpus not in self._nurseries:
                self._nurseries[job.cpus] = Nursery(job_environment(job))
            return JobProcess(job, nursery=self._nurseries[job.cpus])
        except NoNurseryError:
            self._nurseries[job.cpus] = None
        except NurseryError:
            del self._nurseries[job.cpus]  # the next job gets another one
        return JobProcess(job)

    def _ended(self, name: str) -> Ended | None:
        job, process = self._running[name]
        code = process.code()
        if code is None:
            return None
        del self._running[name]
        return Ended(job, code, platform.node(), process.tail())
