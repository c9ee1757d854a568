"""The file of the training episodes, `monitor.csv`."""

import time
from collections.abc import Sequence
from typing import Self

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.loggers.log_files import MonitoredEpisode, MonitorFile
from game_rl.training.extension import Extension, RunParts


class MonitorCallback(BaseCallback):
    """Writes the episodes of a rollout when it is complete.

    A rollout that a stop breaks off is played again, and so are its episodes.
    """

    def __init__(self, file: MonitorFile) -> None:
        super().__init__()
        self._file = file
        self._ended: list[MonitoredEpisode] = []

    def _on_rollout_start(self) -> None:
        self._ended.clear()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if (episode := info.get("episode")) is not None:
                success = info.get("is_success")
                self._ended.append(
                    MonitoredEpisode(
                        reward=float(episode["r"]),
                        length=int(episode["l"]),
                        is_success=None if success is None else bool(success),
                        start_state=info.get("start_state", ""),
                        timesteps=self.num_timesteps,
                        ended_s=time.time(),
                    )
                )
        return True

    def _on_rollout_end(self) -> None:
        if self._ended:
            self._file.add(self._ended)
            self._ended.clear()


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
