"""The machine during a training: which cores do what, and how much memory and disk is left."""

from collections.abc import Sequence
from pathlib import Path

import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.errors import TrainingError
from game_rl.event_log import EventLog
from game_rl.run_dir import RunDir
from game_rl.system.machine import cpu_percent, disk_free_bytes, effective_ram_bytes, own_cores
from game_rl.system.process_memory import PssSampler
from game_rl.system.stop_request import StopRequest
from game_rl.system.units import GIB, MIB, format_bytes
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.worker_cores import TRIALS_S, WorkerCores


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

    def _on_training_end(self) -> None:
        torch.set_num_threads(self._n_threads)


_RAM_WARNING_BYTES = 512 * MIB  # the preflight's margin, below which the kernel starts to swap
_DISK_MARGIN_BYTES = 64 * MIB  # for logs and other programs while the last checkpoint is written


class ResourceMonitorCallback(BoundaryCallback):
    """Writes `resources/…` curves, warns when memory runs low, and stops before the disk is full.

    Args:
        checkpoints: forecasts the size of the next checkpoint.
        events: gets one warning when memory runs low.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        sampler: PssSampler,
        stop: StopRequest,
        checkpoints: CheckpointCallback,
        *,
        run_dir: Path,
        events: EventLog,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._sampler = sampler
        self._stop = stop
        self._run_dir = run_dir
        self._checkpoints = checkpoints
        self._events = events
        self._warned = False

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
            self._check_ram(ram_free)

    def _check_disk(self, free: int) -> None:
        # space for the last checkpoint, which is written before an older one is deleted
        needed, reserve = self._checkpoints.expected_bytes, _DISK_MARGIN_BYTES
        if free < needed + reserve:
            self._stop.ask(
                TrainingError(
                    f"stopped at timestep {self.num_timesteps:,} with a checkpoint: "
                    f"the disk of {self._run_dir} has {format_bytes(free)} left; one more "
                    f"checkpoint needs {format_bytes(needed)}, and {format_bytes(reserve)} stay "
                    "free for logs and other programs; free some space, then "
                    f"continue with {RunDir(self._run_dir).way_on}"
                )
            )

    def _check_ram(self, free: int) -> None:
        if free < _RAM_WARNING_BYTES and not self._warned:
            self._warned = True
            self._events.warn(
                f"only {format_bytes(free)} of memory is left on this machine; this run uses "
                f"{format_bytes(self._sampler.last_bytes)}"
            )
