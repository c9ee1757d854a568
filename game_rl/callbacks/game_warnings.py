"""Find early what is wrong with a game's starts and rewards."""

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.event_log import EventLog


class GameCheckCallback(BaseCallback):
    """Warns of starts that do not vary, and of rewards that are absurd or cannot be saved.

    The starts are checked when a run begins (`GameBoyEnv.start_warnings`). The rewards of all envs
    are checked before the first update, and again each time that the timesteps have doubled
    (`GameBoyEnv.check_reward`): it may take a reward class hours until it cannot be saved.

    Args:
        evaluation_env: envs that are reset before they are used again.
    """

    def __init__(self, evaluation_env: VecEnv, events: EventLog) -> None:
        super().__init__()
        self._evaluation_env = evaluation_env
        self._events = events
        self._due = 0
        self._has_warned = False

    def _on_training_start(self) -> None:
        env = self._evaluation_env
        if self.num_timesteps == 0 and env.has_attr("start_warnings"):
            for text in env.env_method("start_warnings", indices=0)[0]:
                self._events.warn(text)

    def _on_rollout_end(self) -> None:
        if self.num_timesteps < self._due or not self.training_env.has_attr("check_reward"):
            return
        self._due = 2 * self.num_timesteps
        warnings = [text for text in self.training_env.env_method("check_reward") if text]
        if warnings and not self._has_warned:
            self._events.warn(warnings[0])
            self._has_warned = True

    def _on_step(self) -> bool:
        return True
