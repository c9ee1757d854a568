"""Finds early what is wrong with a game's rewards."""

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.event_log import EventLog


class RewardCheckCallback(BaseCallback):
    """Checks the rewards of all envs (`GameBoyEnv.check_reward`), and warns once.

    It does so before the first update, and again each time that the timesteps have doubled: the
    attributes of a reward class may take hours to become what cannot be saved.
    """

    def __init__(self, events: EventLog) -> None:
        super().__init__()
        self._events = events
        self._due = 0
        self._has_warned = False

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
