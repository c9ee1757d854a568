"""Workers that died and were replaced, as a curve and in words."""

from collections.abc import Callable, Sequence

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv


class WorkerRestartsCallback(BoundaryCallback):
    """Writes `resources/worker_restarts`, their number in this process, once a rollout.

    Args:
        warn: told of each, in words for the user.
    """

    def __init__(self, *, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._warn = warn
        self._told = 0

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        deaths = self._deaths()
        for death in deaths[self._told :]:
            self._warn(f"{death}; it was restarted and its episodes were cut short")
        self._told = len(deaths)
        self.logger.record("resources/worker_restarts", len(deaths))

    def _deaths(self) -> Sequence[str]:
        vec_env = self.training_env.unwrapped
        if isinstance(vec_env, SharedMemoryVecEnv | HalvedVecEnv):
            return vec_env.worker_deaths
        return ()
