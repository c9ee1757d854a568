"""An env that has the spaces of a run's envs but no emulator."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.games.definition import Game


class SpacesEnv(gym.Env[Any, Any]):
    """An env with spaces only, which is all that an algorithm needs before it plays."""

    def __init__(self, observation_space: spaces.Box, action_space: spaces.Discrete) -> None:
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        assert self.observation_space.shape is not None
        return np.zeros(self.observation_space.shape, np.uint8), {}


def spaces_env(config: RunConfig, game: Game) -> SpacesEnv:
    """Return an env with the spaces of the run's envs."""
    observations = make_observation_format(config.env, game).space
    return SpacesEnv(observations, spaces.Discrete(len(game.definition.actions)))
