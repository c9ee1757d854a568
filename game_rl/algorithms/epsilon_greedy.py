"""Epsilon-greedy exploration."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.algorithms import ExplorationConfig
from game_rl.schedules import Ramp, Restart, RestartingRamp


class EpsilonGreedy:
    """Replaces a scheduled share of actions by random ones, independently for each env.

    Args:
        epsilon: share of random actions at a timestep, counted over all envs.
        n_actions: size of the action space.
        rng: draws which actions are replaced, and by what.
    """

    def __init__(
        self, epsilon: RestartingRamp, *, n_actions: int, rng: np.random.Generator
    ) -> None:
        self.epsilon = epsilon
        self._n_actions = n_actions
        self._rng = rng

    def explored(self, actions: NDArray[np.int64], epsilon: float) -> NDArray[np.int64]:
        """Replace each action with probability `epsilon` by a uniform one; int64 [n_envs]."""
        drawn = self._rng.integers(self._n_actions, size=len(actions))
        return np.where(self._rng.random(len(actions)) < epsilon, drawn, actions)

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable."""
        return {"rng": json.dumps(self._rng.bit_generator.state)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(state["rng"])


def make_epsilon_greedy(
    config: ExplorationConfig, *, timesteps: int, n_actions: int, seed: int
) -> EpsilonGreedy:
    """Return the exploration of a run of `timesteps` timesteps."""
    epsilon = exploration_schedule(config, timesteps=timesteps)
    return EpsilonGreedy(epsilon, n_actions=n_actions, rng=np.random.default_rng(seed))


def exploration_schedule(config: ExplorationConfig, *, timesteps: int) -> RestartingRamp:
    """Return the share of random actions over a run of `timesteps` timesteps."""
    share = max(1, round(config.fraction * timesteps))
    restarts = (Restart(at=each.at, start=each.start, over=each.over) for each in config.restarts)
    return RestartingRamp(Ramp(config.start, config.end, share), tuple(restarts))
