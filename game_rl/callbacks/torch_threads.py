"""Hand the cores to whoever needs them: the emulators while collecting, torch while updating."""

import torch
from stable_baselines3.common.callbacks import BaseCallback


class TorchThreadsCallback(BaseCallback):
    """One torch thread during rollouts, all during updates.

    Idle torch threads spin against the emulator processes; updates want every core.
    """

    def __init__(self, n_threads: int) -> None:
        super().__init__()
        self._n_threads = n_threads

    def _on_rollout_start(self) -> None:
        torch.set_num_threads(1)

    def _on_rollout_end(self) -> None:
        torch.set_num_threads(self._n_threads)

    def _on_training_end(self) -> None:
        torch.set_num_threads(self._n_threads)

    def _on_step(self) -> bool:
        return True
