"""Rewards as an algorithm learns them: normalised, scaled, clipped."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd

from game_rl.config.algorithms import RAW, RewardConfig

_Floats = NDArray[np.float32]

_EPSILON = 1e-8  # as in VecNormalize
REWARD_STATE = "reward"
"""Key of the statistics in an algorithm's own state."""


class RewardScaling:
    """Makes of the game's rewards those to learn from: clip(scale * r / sqrt(v + 1e-8)).

    Without `normalize`, nothing is divided. With it, v is the variance of the discounted returns of
    all envs so far, one from each env and timestep. The statistics are those of SB3's VecNormalize.

    Args:
        gamma: discount factor of the returns.
        n_envs: number of envs whose rewards are observed.
    """

    def __init__(self, config: RewardConfig, *, gamma: float, n_envs: int) -> None:
        self._config = config
        self._gamma = gamma
        self._statistics = RunningMeanStd() if config.normalize else None
        self._returns = np.zeros(n_envs)

    def __call__(self, rewards: _Floats) -> _Floats:
        """Return the rewards to learn from, float32, in a new array of the same shape."""
        learned: NDArray[np.floating] = np.array(rewards)
        clip = self._config.clip
        if self._statistics is not None:
            learned = learned / np.sqrt(self._statistics.var + _EPSILON)
        if self._config.scale != 1:
            learned = learned * self._config.scale
        if clip is not None:
            learned = np.clip(learned, -clip, clip)
        return learned.astype(np.float32, copy=False)

    def observe(self, rewards: _Floats, dones: NDArray[np.bool_]) -> None:
        """Take a vec step into the statistics."""
        if self._statistics is not None:
            self._returns = self._returns * self._gamma + rewards
            self._statistics.update(self._returns)
            self._returns[dones] = 0

    def begin_episodes(self) -> None:
        """Begin the returns anew, because all envs begin new episodes."""
        self._returns = np.zeros_like(self._returns)

    def state(self) -> dict[str, Any]:
        """Return the statistics as JSON-serialisable data; empty if there are none."""
        if self._statistics is None:
            return {}
        statistics = self._statistics
        return {
            "mean": float(statistics.mean),
            "var": float(statistics.var),
            "count": float(statistics.count),
            "returns": self._returns.tolist(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore statistics. Returns of another number of envs begin anew, as their episodes do.

        Raises:
            KeyError, TypeError, ValueError: `state` is not that of a RewardScaling.
        """
        if self._statistics is None:
            return
        mean, var, count = (np.float64(state[name]) for name in ("mean", "var", "count"))
        returns = np.array(state["returns"], np.float64)
        if returns.ndim != 1 or not np.isfinite([mean, var, count, *returns]).all() or var < 0:
            raise ValueError("the statistics of rewards are not numbers")
        self._statistics.mean = np.array(mean)
        self._statistics.var = np.array(var)
        self._statistics.count = float(count)
        same = len(returns) == len(self._returns)
        self._returns = returns if same else np.zeros_like(self._returns)


def make_reward_scaling(config: RewardConfig, *, gamma: float, n_envs: int) -> RewardScaling | None:
    """Return the RewardScaling of this config, or None if rewards are learned as they are."""
    return None if config == RAW else RewardScaling(config, gamma=gamma, n_envs=n_envs)


def observed_rewards(
    scaling: RewardScaling | None, rewards: _Floats, dones: NDArray[np.bool_]
) -> _Floats:
    """Take a vec step into the statistics, and return its rewards to learn from."""
    if scaling is None:
        return rewards
    scaling.observe(rewards, dones)
    return scaling(rewards)


def reward_state(scaling: RewardScaling | None) -> dict[str, Any]:
    """Return the part of an algorithm's own state that has the statistics, if there are any."""
    state = {} if scaling is None else scaling.state()
    return {REWARD_STATE: state} if state else {}


def take_reward_state(scaling: RewardScaling | None, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Restore the statistics in an algorithm's own state, if it has any, and return the rest."""
    if scaling is not None and REWARD_STATE in state:
        scaling.load_state(state[REWARD_STATE])
    return {key: value for key, value in state.items() if key != REWARD_STATE}
