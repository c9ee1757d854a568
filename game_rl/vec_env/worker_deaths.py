"""A count of the workers' deaths, which ends the run when one worker keeps dying."""

import time
from typing import NamedTuple

from game_rl.errors import WorkerError

_MOST_IN_A_ROW = 3
_CALM_VEC_STEPS = 1_000  # a longer time without a death ends the row


class WorkerDeath(NamedTuple):
    """One death in words; `at_s` is on the monotonic clock, so deaths sort by time."""

    at_s: float
    account: str


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
