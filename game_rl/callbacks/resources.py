"""The machine during a training: which cores do what, and how much memory and disk is left."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from statistics import median

import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.resource_watch import PlanWatch, ResourceWatch
from game_rl.checkpoints.checkpoint_files import STOP_MARGIN_BYTES
from game_rl.errors import TrainingError
from game_rl.files.run_dir import RunDir
from game_rl.system.machine import cpu_percent, disk_free_bytes, effective_ram_bytes, own_cores
from game_rl.system.process_memory import PssSampler
from game_rl.system.processes import set_cores
from game_rl.system.stop_request import StopRequest
from game_rl.system.units import GIB, format_bytes
from game_rl.vec_env.halved_vec_env import HalvedVecEnv

# Other programs make one second slow and the next one fast, so many short trials say more than a
# few long ones. Both choices get equally many trials, and each goes first equally often.
_TRIAL_S = 0.1
TRIALS_S = 4.0
_ROUND = (0, 1, 1, 0)
_LEAST_ROUNDS = 2

Cores = Collection[int]


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
        move: Callable[[int, Cores], None] = set_cores,
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
        self._seconds = 0.0
        self._n_vec_steps = 0
        self._n_in_rollout = 0
        self._last = 0.0
        self._workers: Sequence[int] = ()
        self.cores: Cores = cores
        self.is_settled = False

    def begin(self, workers: Sequence[int]) -> None:
        """Begin a rollout with these worker processes."""
        if self._n_in_rollout == 1:
            self.is_settled = True
            self.cores = self._choices[0]
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
        self._seconds = 0.0
        self._n_vec_steps = 0
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


class CoresCallback(BaseCallback):
    """Gives torch one thread during rollouts and `n_threads` during updates, and places workers.

    Idle torch threads spin and slow the emulator processes, while updates need every core. The
    workers of a HalvedVecEnv are placed by WorkerCores, whose trials take `trials_s` seconds of the
    rollouts.
    """

    def __init__(self, n_threads: int, *, trials_s: float = TRIALS_S) -> None:
        super().__init__()
        self._n_threads = n_threads
        self._trials_s = trials_s
        self._worker_cores: WorkerCores | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the workers' cores are final."""
        return self._worker_cores is None or self._worker_cores.is_settled

    def _on_rollout_start(self) -> None:
        torch.set_num_threads(1)
        vec_env = self.training_env.unwrapped
        if not isinstance(vec_env, HalvedVecEnv):
            return
        cores = own_cores()
        if self._worker_cores is None and len(cores) > 1:
            self._worker_cores = WorkerCores(cores, trials_s=self._trials_s)
        if self._worker_cores is not None:
            self._worker_cores.begin([process.pid for process in vec_env.processes if process.pid])

    def _on_step(self) -> bool:
        if self._worker_cores is not None:
            self._worker_cores.stepped()
        return True

    def _on_rollout_end(self) -> None:
        torch.set_num_threads(self._n_threads)

    _on_training_end = _on_rollout_end


class ResourceMonitorCallback(BoundaryCallback):
    """Writes `resources/…` curves, warns when little is left, and stops before the disk is full.

    Args:
        checkpoints: forecasts the size of the next checkpoint.
        watch: warns.
        plan: compares with the forecast.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        sampler: PssSampler,
        stop: StopRequest,
        checkpoints: CheckpointCallback,
        *,
        run_dir: Path,
        watch: ResourceWatch,
        plan: PlanWatch,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._sampler = sampler
        self._stop = stop
        self._run_dir = run_dir
        self._checkpoints = checkpoints
        self._watch = watch
        self._plan = plan

    def on_boundary(self, *, is_last: bool) -> None:
        disk_free = disk_free_bytes(self._run_dir)
        ram_free = effective_ram_bytes()[1]
        self.logger.record("resources/ram_gib", self._sampler.last_bytes / GIB)
        self.logger.record("resources/ram_free_gib", ram_free / GIB)
        self.logger.record("resources/disk_free_gib", disk_free / GIB)
        self.logger.record("resources/cpu_percent", cpu_percent())
        if self.model.device.type == "cuda":
            reserved = torch.cuda.max_memory_reserved(self.model.device)
            self.logger.record("resources/vram_gib", reserved / GIB)
        if not is_last:
            self._check_disk(disk_free)
            self._watch.look(
                self.num_timesteps,
                disk_free=disk_free,
                ram_free=ram_free,
                ram_used=self._sampler.last_bytes,
            )
            self._plan.look(self.num_timesteps, ram_used=self._sampler.last_bytes)

    def _check_disk(self, free: int) -> None:
        # space for the last checkpoint, which is written before an older one is deleted
        needed = self._checkpoints.expected_bytes
        reserve = STOP_MARGIN_BYTES
        if free < needed + reserve:
            self._stop.ask(
                TrainingError(
                    f"stopped at timestep {self.num_timesteps:,} with a checkpoint: "
                    f"the disk of {self._run_dir} has {format_bytes(free)} left; one more "
                    f"checkpoint needs {format_bytes(needed)}, and {format_bytes(reserve)} must "
                    "stay free for logs and other programs; free some space, then continue with "
                    f"{RunDir(self._run_dir).way_on}"
                )
            )
