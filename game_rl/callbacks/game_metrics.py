"""Curves of the game's reward terms and variables."""

from stable_baselines3.common.callbacks import BaseCallback


class GameMetricsCallback(BaseCallback):
    """Logs means over the episodes that ended since the last log, as `game/…` in TensorBoard.

    `game/reward/TERM` is the term's sum over an episode, `game/VARIABLE` its value at the end.
    """

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            for term, value in info.get("reward_terms", {}).items():
                self.logger.record_mean(f"game/reward/{term}", value)
            for name, value in info.get("game", {}).items():
                self.logger.record_mean(f"game/{name}", value)
        return True
