"""Curve and events about workers that died and were replaced."""

from collections.abc import Sequence

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.event_log import EventLog
from game_rl.events import WorkerRestarted
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.workers import WorkerDeath


class WorkerRestartsCallback(BoundaryCallback):
    """Writes `resources/worker_restarts`, their number in this process, and an event for each."""

    def __init__(self, events: EventLog) -> None:
        super().__init__()
        self._events = events
        self._told = 0

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        deaths = self._deaths()
        for number, death in enumerate(deaths[self._told :], start=self._told + 1):
            text = f"{death.account}; it was restarted and its episodes were cut short"
            self._events.emit(
                WorkerRestarted(timesteps=self.boundary_timesteps, text=text, restarts=number)
            )
        self._told = len(deaths)
        self.logger.record("resources/worker_restarts", len(deaths))

    def _deaths(self) -> Sequence[WorkerDeath]:
        vec_env = self.training_env.unwrapped
        if isinstance(vec_env, SharedMemoryVecEnv | HalvedVecEnv):
            return vec_env.worker_deaths
        return ()
