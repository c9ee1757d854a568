"""Hand the cores to whoever needs them: emulators and network while collecting, then torch."""

import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.system.machine import own_cores
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.worker_cores import TRIALS_S, WorkerCores


class CoresCallback(BaseCallback):
    """One torch thread during rollouts, all during updates, and workers where they are fastest.

    Idle torch threads spin against the emulator processes; updates want every core. For the
    workers, where one half of the envs plays while the network answers the other, see WorkerCores,
    whose trials take `trials_s` seconds of collecting.
    """

    def __init__(self, n_threads: int, *, trials_s: float = TRIALS_S) -> None:
        super().__init__()
        self._n_threads = n_threads
        self._trials_s = trials_s
        self._worker_cores: WorkerCores | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the workers stay on the cores where they are."""
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
