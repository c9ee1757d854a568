"""Hand the cores to whoever needs them: the emulators while collecting, torch while updating."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from stable_baselines3.common.callbacks import BaseCallback


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
