"""Events about the progress and the results of a training."""

import time
from collections.abc import Sequence
from statistics import fmean

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import Interval
from game_rl.event_log import EventLog
from game_rl.events import Progress, RolloutEnded

_PROGRESS_EVERY_S = 0.2


class ProgressCallback(BaseCallback):
    """Emits `Progress` a few times a second, and `RolloutEnded`.

    Args:
        every_timesteps: report only the first rollout after each multiple of one of these; if
            empty, report each rollout.
    """

    def __init__(self, events: EventLog, *, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__()
        self._events = events
        self._rhythm = [Interval(timesteps) for timesteps in every_timesteps]
        self._told_s = self._started_s = 0.0
        self._started_at = 0

    def _on_training_start(self) -> None:
        self._told_s = self._started_s = time.monotonic()
        self._events.timesteps = self._started_at = self.num_timesteps

    def _on_step(self) -> bool:
        self._events.timesteps = self.num_timesteps
        now = time.monotonic()
        if now - self._told_s > _PROGRESS_EVERY_S:
            self._told_s = now
            self._events.emit(
                Progress(
                    timesteps=self.num_timesteps,
                    timesteps_per_s=self._rate(now),
                    mean_reward=self._mean_reward(),
                    success_rate=self._success_rate(),
                )
            )
        return True

    def _on_rollout_end(self) -> None:
        due = [interval.crossed(self.num_timesteps) for interval in self._rhythm]
        if any(due) or not due:
            self._events.emit(
                RolloutEnded(
                    timesteps=self.num_timesteps,
                    timesteps_per_s=self._rate(time.monotonic()),
                    mean_reward=self._mean_reward(),
                    success_rate=self._success_rate(),
                )
            )

    def _rate(self, now: float) -> float:
        """Return the timesteps per second since this process began to train."""
        elapsed_s = max(now - self._started_s, 1e-9)
        return round((self.num_timesteps - self._started_at) / elapsed_s, 1)

    def _mean_reward(self) -> float | None:
        episodes = self.model.ep_info_buffer
        return round(fmean(float(e["r"]) for e in episodes), 4) if episodes else None

    def _success_rate(self) -> float | None:
        successes = self.model.ep_success_buffer
        return round(fmean(map(float, successes)), 4) if successes else None
