"""The file of the training episodes, `monitor.csv`."""

from collections.abc import Sequence
from typing import Self

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.monitor_callback import MonitorCallback
from game_rl.loggers.monitor_file import MonitorFile
from game_rl.training.extensions import Extension, RunParts


class MonitorExtension(Extension):
    """Writes `monitor.csv`, whose length is part of each checkpoint."""

    def __init__(self, file: MonitorFile) -> None:
        self._file = file

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Open the file; None if the config turns it off, or if nothing is played yet.

        Raises:
            OSError: the disk fails.
        """
        if not parts.config.logging.monitor or parts.is_offline:
            return None
        return cls(MonitorFile(parts.run_dir.monitor, parts.game.name))

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return [MonitorCallback(self._file)]

    def close(self) -> None:
        self._file.close()
