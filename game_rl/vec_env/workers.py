"""Worker processes that are replaced when they die, within limits, and how many a run has.

Where a number is `wanted`, it is the one in the config, or None if the config leaves it open.
"""

import itertools
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import cloudpickle
import gymnasium as gym

from game_rl.errors import WorkerError
from game_rl.system.shared_memory import new_shared_memory
from game_rl.vec_env.worker import InProcessWorker, StartMethod
from game_rl.vec_env.worker_pool import WorkerPool
from game_rl.vec_env.worker_protocol import (
    Attachment,
    LiveSlots,
    Request,
    SharedArrays,
    Spaces,
    WorkerCommand,
)

EnvFn = Callable[[], gym.Env[Any, Any]]
RequestFor = Callable[[int], Request | None]


class Workers:
    """Worker processes, each with a contiguous block of envs, that are replaced when they die.

    A worker that dies (by a crash in native code or the kernel's out-of-memory killer) is replaced
    by a new process that builds the same envs. These have to be reset before they can be stepped,
    and changes made by `set_attr` and methods are lost.

    Attributes:
        blocks: the envs of each worker.
        deaths: deaths of all workers so far.
        lost: replaced workers whose envs have not been reset yet; the owner clears it.

    Raises (in any method; the workers are closed first):
        WorkerError: an env raised an exception or hung; a worker died while its envs were built
            for the first time, or for the third time in a row.
        GameRLError: an env raised one.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        n_workers: int,
        timeout_s: float,
        start_method: StartMethod | None,
    ) -> None:
        n_envs = len(env_fns)
        n_workers = min(n_workers, n_envs)
        bounds = [worker * n_envs // n_workers for worker in range(n_workers + 1)]
        self.blocks = [range(first, end) for first, end in itertools.pairwise(bounds)]
        self.deaths = WorkerDeaths(len(self.blocks))
        self.lost: set[int] = set()
        self._env_fns = env_fns
        self._empty: set[int] = set()  # new processes, without envs yet
        self._memory = new_shared_memory()
        weakref.finalize(self, self._memory.close)
        self._attachment: Attachment | None = None
        self._live: LiveSlots | None = None
        self._pool = WorkerPool(self.blocks, timeout_s=timeout_s, start_method=start_method)

    @property
    def processes(self) -> list[BaseProcess | InProcessWorker]:
        return self._pool.processes

    @property
    def is_open(self) -> bool:
        return self._pool.is_open

    def close(self) -> None:
        self._pool.close()

    def build(self) -> Spaces:
        """Build all envs and return their common spaces."""
        spaces = self._build(range(len(self.blocks)))
        self._pool.fail_if_any_died()
        for worker, others in spaces.items():
            if others != spaces[0]:
                raise WorkerError(
                    f"env {self.blocks[worker][0]} has {others}, but env 0 has {spaces[0]}"
                )
        return spaces[0]

    def attach(self, attachment: Attachment) -> SharedArrays:
        """Create the shared arrays, let all workers map them, and return them."""
        arrays = SharedArrays(self._memory, attachment)
        self._attachment = replace(attachment, memory_name=self._memory.name)
        self._attach(range(len(self.blocks)))
        self._pool.fail_if_any_died()
        return arrays

    def show_in(self, live: LiveSlots) -> None:
        """Let the workers write their envs' shown timesteps to a live file."""
        self._live = live
        self._show(range(len(self.blocks)))

    def exchange(self, request_for: RequestFor) -> dict[int, Any]:
        """Send a request to each worker that has one, and return their results."""
        self.request(request_for)
        return self.collect(request_for)

    def request(self, request_for: RequestFor) -> None:
        self._pool.check_open()
        self._replace_dead()
        self._pool.request(_requests(range(len(self.blocks)), request_for))

    def collect(self, request_for: RequestFor) -> dict[int, Any]:
        """Return the requested results; replace workers that died meanwhile and ask them again."""
        results = self._pool.collect()
        while replaced := self._replace_dead():
            results |= self._pool.exchange(_requests(replaced, request_for))
        return results

    def _replace_dead(self) -> set[int]:
        """Replace dead workers until all replacements live; return the new workers' numbers."""
        replaced: set[int] = set()
        while self._pool.deaths or self._empty:
            self._note_deaths()
            self._build(self._empty)
            self._attach(self._empty)
            self._show(self._empty)
            living = self._empty - self._pool.deaths.keys()
            self._empty -= living
            self.lost |= living
            replaced |= living
        return replaced

    def _note_deaths(self) -> None:
        for worker, death in list(self._pool.deaths.items()):
            try:
                self.deaths.note(worker, death)
            except WorkerError as error:
                self._pool.fail(error)
            self._empty.add(worker)
            self._pool.restart(worker)

    def _build(self, workers: Sequence[int] | set[int]) -> dict[int, Spaces]:
        requests = {}
        for worker in workers:
            envs = self.blocks[worker]
            pickled = cloudpickle.dumps([self._env_fns[number] for number in envs])
            requests[worker] = Request(WorkerCommand.BUILD, envs, (pickled,))
        return self._pool.exchange(requests)

    def _attach(self, workers: Sequence[int] | set[int]) -> None:
        request = Request(WorkerCommand.ATTACH, (), (self._attachment,))
        living = [worker for worker in workers if worker not in self._pool.deaths]
        descriptor = self._memory.descriptor
        self._pool.request(dict.fromkeys(living, request), file_descriptor=descriptor)
        self._pool.collect()

    def _show(self, workers: Sequence[int] | set[int]) -> None:
        if self._live is None:
            return
        request = Request(WorkerCommand.SHOW_IN, (), (self._live,))
        self._pool.exchange(_requests(workers, lambda _: request))


def _requests(workers: Sequence[int] | set[int], request_for: RequestFor) -> dict[int, Request]:
    return {worker: request for worker in workers if (request := request_for(worker)) is not None}


_MOST_IN_A_ROW = 3
_CALM_VEC_STEPS = 1_000  # a longer time without a death ends the row


class WorkerDeath(NamedTuple):
    """One death in words; `at_s` is on the monotonic clock, so deaths sort by time."""

    at_s: float
    text: str


class WorkerDeaths:
    """The deaths of `n_workers` workers; `note` raises when the run must end.

    Deaths of one worker are in a row when at most 1,000 vec steps lie between each and the next.
    After three in a row the cause must be in the game or the machine, and more restarts would hide
    it. When memory runs out, the kernel may kill all workers at once, which is one death of each.

    Attributes:
        noted: all deaths, oldest first.
        vec_steps: number of vec steps so far, counted by the owner.
    """

    def __init__(self, n_workers: int) -> None:
        self.noted: list[WorkerDeath] = []
        self.vec_steps = 0
        self._counts = [0] * n_workers
        self._in_a_row = [0] * n_workers
        self._last_at = [0] * n_workers

    def count(self, worker: int) -> int:
        return self._counts[worker]

    def note(self, worker: int, death: WorkerError) -> None:
        """Record that `worker` has died now.

        Raises:
            WorkerError: it was the worker's third death in a row.
        """
        if self.vec_steps - self._last_at[worker] > _CALM_VEC_STEPS:
            self._in_a_row[worker] = 0
        self._last_at[worker] = self.vec_steps
        self._counts[worker] += 1
        self._in_a_row[worker] += 1
        self.noted.append(WorkerDeath(time.monotonic(), str(death)))
        if self._in_a_row[worker] == _MOST_IN_A_ROW:
            raise WorkerError(f"{death}; it is the third time in a row") from death


def training_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Return the workers of a training; one CPU is left to choose actions for the idle half."""
    return min(wanted or 2 * max(1, cpus - 1), n_envs)


def evaluation_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Return the workers of an evaluation, whose envs all play at once."""
    return min(wanted or cpus, n_envs)
