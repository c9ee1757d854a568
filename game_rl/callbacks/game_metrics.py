"""What happened in the game, as curves."""

from collections import defaultdict

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback


class GameMetricsCallback(BaseCallback):
    """Means over the episodes that ended in a rollout, as `game/…` in TensorBoard.

    `game/reward/TERM` is the term's sum over an episode, `game/VARIABLE` its value at the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: defaultdict[str, list[float]] = defaultdict(list)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            for term, value in info.get("reward_terms", {}).items():
                self._values[f"game/reward/{term}"].append(value)
            for name, value in info.get("game", {}).items():
                self._values[f"game/{name}"].append(value)
        return True

    def _on_rollout_end(self) -> None:
        for key, values in self._values.items():
            self.logger.record(key, float(np.mean(values)))
        self._values.clear()
