"""Assigning the cores: to emulators and network during rollouts, to torch during updates."""

import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.system.machine import own_cores
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
