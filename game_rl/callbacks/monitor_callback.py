"""Writes each training episode to `monitor.csv`."""

import time

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.loggers.monitor_file import MonitoredEpisode, MonitorFile


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
