"""A wrapper of a person's own whose state, over all episodes, changes every reward."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray


class Novelty(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Rewards actions that this env has rarely taken, with a little noise."""

    def __init__(self, env: gymnasium.Env[Any, Any], *, scale: float = 0.1) -> None:
        super().__init__(env)
        self.scale = scale
        self.counts: NDArray[np.float64] = np.zeros(16)
        self.in_episode = 0

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        self.in_episode = 0
        return self.env.reset(**arguments)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.counts[int(action) % 16] += 1 + self.np_random.random()
        self.in_episode += 1
        bonus = self.scale / np.sqrt(self.counts[int(action) % 16] + self.in_episode)
        return observation, float(reward) + float(bonus), terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "in_episode": self.in_episode}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.counts, self.in_episode = state["counts"], state["in_episode"]
