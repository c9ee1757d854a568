"""Epsilon-greedy: now and then an action at random."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.exploration import ExplorationConfig
from game_rl.schedules import Ramp, Restart, RestartingRamp


class Exploration:
    """Replaces actions by random ones, each env by itself, by a share that a schedule says.

    Args:
        epsilon: the share of random actions, by the timesteps of all envs together.
        n_actions: to choose from.
        rng: decides.
    """

    def __init__(
        self, epsilon: RestartingRamp, *, n_actions: int, rng: np.random.Generator
    ) -> None:
        self.epsilon = epsilon
        self._n_actions, self._rng = n_actions, rng

    def explored(self, actions: NDArray[np.int64], epsilon: float) -> NDArray[np.int64]:
        """int64 [n_envs]: each action, or with probability `epsilon` one drawn evenly from all."""
        drawn = self._rng.integers(self._n_actions, size=len(actions))
        return np.where(self._rng.random(len(actions)) < epsilon, drawn, actions)

    def state(self) -> dict[str, Any]:
        """What `load_state` takes to go on from here; JSON can hold it."""
        return {"rng": json.dumps(self._rng.bit_generator.state)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(state["rng"])


def make_exploration(
    config: ExplorationConfig, *, timesteps: int, n_actions: int, seed: int
) -> Exploration:
    """The exploration of a run of so many timesteps."""
    epsilon = exploration_schedule(config, timesteps=timesteps)
    return Exploration(epsilon, n_actions=n_actions, rng=np.random.default_rng(seed))


def exploration_schedule(config: ExplorationConfig, *, timesteps: int) -> RestartingRamp:
    """The share of random actions in a run of so many timesteps."""
    share = max(1, round(config.fraction * timesteps))
    restarts = (Restart(at=each.at, start=each.start, over=each.over) for each in config.restarts)
    return RestartingRamp(Ramp(config.start, config.end, share), tuple(restarts))
