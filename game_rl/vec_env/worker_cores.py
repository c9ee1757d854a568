"""On which cores the workers of a training play: on all, or on all but one."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from statistics import median

# Other programs make a second slow and the next one fast: many short trials tell more than few long
# ones. Each place has as many, and each goes first as often.
_TRIAL_S = 0.1
TRIALS_S = 4.0
_ROUND = (0, 1, 1, 0)
_LEAST_ROUNDS = 2

Cores = Collection[int]


def _move(process: int, cores: Cores) -> None:
    os.sched_setaffinity(process, cores)


class WorkerCores:
    """Finds out whether vec steps are faster when the workers leave one core to the network.

    With few envs all wait for the network, which is faster on a core of its own; with many,
    emulators need every core. Both are tried in turns for some seconds, and the faster one is kept.
    No result depends on it.
    In rollouts of a single vec step nothing overlaps; the workers keep all cores then.

    Args:
        cores: that the workers may use, two at least.
        trials_s: seconds of vec steps that the trials take together.
        move: puts a process, by its id, on cores.
        clock: seconds.

    Attributes:
        cores: where the workers are to play now.
        is_settled: whether they stay there.
    """

    def __init__(
        self,
        cores: Sequence[int],
        *,
        trials_s: float = TRIALS_S,
        move: Callable[[int, Cores], None] = _move,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # another training on this machine spares another core, if chance will have it so
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
        """A rollout begins, with these processes."""
        if self._n_in_rollout == 1:
            self.is_settled, self.cores = True, self._choices[0]
        self._n_in_rollout = 0
        self._workers = workers
        self._place()

    def stepped(self) -> None:
        """A vec step of the rollout is over."""
        if self.is_settled:
            return
        now = self._clock()
        self._n_in_rollout += 1
        if self._n_in_rollout > 1:  # before the first one lie an update and evaluations
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
            # it may have died by now, and a sandbox may forbid it
            with contextlib.suppress(OSError):
                self._move(worker, self.cores)
