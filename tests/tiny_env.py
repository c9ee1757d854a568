"""A small image env whose rewards and endings can be worked out by hand."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

FRAME = (1, 36, 36)  # the smallest picture that NatureCNN takes
EPISODE_LENGTH = 5


class TinyEnv(gym.Env[NDArray[np.uint8], np.int64]):
    """Episodes of five timesteps: action 1 earns reward 1, and as last action means success."""

    observation_space = spaces.Box(0, 255, FRAME, np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._timestep = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._timestep = 0
        return self._frame(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        self._timestep += 1
        over = self._timestep == EPISODE_LENGTH
        info: dict[str, Any] = {}
        if over:
            info = {
                "is_success": bool(action == 1),
                "reward_terms": {"ones": float(action)},
                "game": {"timestep": self._timestep},
            }
        return self._frame(), float(action), over, False, info

    def _frame(self) -> NDArray[np.uint8]:
        return self.np_random.integers(0, 256, FRAME, dtype=np.uint8)


def short_episodes() -> TimeLimit:
    """Return a TinyEnv whose episodes are truncated after three timesteps instead of ending."""
    return TimeLimit(TinyEnv(), 3)
