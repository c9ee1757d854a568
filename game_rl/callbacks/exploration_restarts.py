"""Reporting restarts of exploration."""

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.event_log import EventLog, read_events
from game_rl.events import ExplorationRestarted
from game_rl.run_dir import RunDir
from game_rl.schedules import Restart, RestartingRamp


class ExplorationRestartsCallback(BaseCallback):
    """Emits an event at the first rollout that a restart affects, once for each restart.

    A restart that is already in the run's event log is not reported again. The log may have it from
    before a resume, or from the parent of a fork.
    """

    def __init__(self, epsilon: RestartingRamp, events: EventLog, run_dir: RunDir) -> None:
        super().__init__()
        self._epsilon, self._events, self._run_dir = epsilon, events, run_dir
        self._pending: list[Restart] = []

    def _on_training_start(self) -> None:
        account = read_events(self._run_dir)
        told = {event.at for event in account if isinstance(event, ExplorationRestarted)}
        self._pending = [each for each in self._epsilon.restarts if each.at not in told]

    def _on_rollout_start(self) -> None:
        now = self.num_timesteps
        while self._pending and self._pending[0].at <= now:
            restart = self._pending.pop(0)
            if now < restart.at + restart.over:
                self._events.emit(
                    ExplorationRestarted(
                        timesteps=now,
                        at=restart.at,
                        start=restart.start,
                        over=restart.over,
                        share=self._epsilon.at(now),
                    )
                )

    def _on_step(self) -> bool:
        return True
