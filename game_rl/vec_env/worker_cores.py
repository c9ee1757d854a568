"""The cores on which a training's workers play: all of them, or all but one."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from statistics import median

# Other programs make one second slow and the next one fast, so many short trials say more than a
# few long ones. Both choices get equally many trials, and each goes first equally often.
_TRIAL_S = 0.1
TRIALS_S = 4.0
_ROUND = (0, 1, 1, 0)
_LEAST_ROUNDS = 2

Cores = Collection[int]


def _move(process: int, cores: Cores) -> None:
    os.sched_setaffinity(process, cores)


class WorkerCores:
    """A trial of whether vec steps are faster when the workers leave one core to the network.

    With few envs, all workers wait for the network, which is faster on a core of its own. With
    many, the emulators need every core. Both choices are tried in turns for some seconds, and the
    faster one is kept. Results of the training do not depend on it.
    In rollouts of a single vec step nothing overlaps, so the workers keep all cores.

    Args:
        cores: cores that the workers may use, at least two.
        trials_s: seconds of vec steps that all trials take together.
        move: function that restricts a process, given its id, to cores.
        clock: function that returns the time in seconds.

    Attributes:
        cores: cores on which the workers play now.
        is_settled: whether the trials are over and `cores` stays as it is.
    """

    def __init__(
        self,
        cores: Sequence[int],
        *,
        trials_s: float = TRIALS_S,
        move: Callable[[int, Cores], None] = _move,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # by process id, so that two trainings on one machine are likely to spare different cores
        spared = cores[os.getpid() % len(cores)]
        self._choices = (cores, [core for core in cores if core != spared])
        self._paces: tuple[list[float], list[float]] = ([], [])
        self._trials_s = trials_s
        self._move = move
        self._clock = clock
        self._total_s = 0.0
        self._seconds, self._n_vec_steps = 0.0, 0
        self._n_in_rollout = 0
        self._last = 0.0
        self._workers: Sequence[int] = ()
        self.cores: Cores = cores
        self.is_settled = False

    def begin(self, workers: Sequence[int]) -> None:
        """Begin a rollout with these worker processes."""
        if self._n_in_rollout == 1:
            self.is_settled, self.cores = True, self._choices[0]
        self._n_in_rollout = 0
        self._workers = workers
        self._place()

    def stepped(self) -> None:
        """Count a finished vec step of the rollout."""
        if self.is_settled:
            return
        now = self._clock()
        self._n_in_rollout += 1
        if self._n_in_rollout > 1:  # before the first, updates and evaluations ran
            self._seconds += now - self._last
            self._n_vec_steps += 1
        self._last = now
        if self._seconds >= _TRIAL_S:
            self._end_trial()
            self._place()

    def _end_trial(self) -> None:
        self._paces[self._choices.index(self.cores)].append(self._seconds / self._n_vec_steps)
        self._total_s += self._seconds
        self._seconds, self._n_vec_steps = 0.0, 0
        n_rounds, in_round = divmod(sum(map(len, self._paces)), len(_ROUND))
        if in_round == 0 and n_rounds >= _LEAST_ROUNDS and self._total_s >= self._trials_s:
            self.is_settled = True
            on_all, on_fewer = map(median, self._paces)
            self.cores = self._choices[on_fewer < on_all]
        else:
            self.cores = self._choices[_ROUND[in_round]]

    def _place(self) -> None:
        for worker in self._workers:
            # the worker may have died by now, or a sandbox may forbid the call
            with contextlib.suppress(OSError):
                self._move(worker, self.cores)
