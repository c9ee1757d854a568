"""Returns and targets for value functions, computed from rewards."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]

LearnedRewards = Callable[[_Floats], _Floats]
"""Makes of the game's rewards those to learn from, in a new array of the same shape."""


def q_lambda_returns(
    rewards: _Floats,
    next_values: _Floats,
    terminated: NDArray[np.bool_],
    episode_end: NDArray[np.bool_],
    *,
    gamma: float,
    lam: float,
) -> _Floats:
    """Q(lambda) targets, computed backwards.

    G_t = r_t + gamma (1 - terminated_t) [(1 - c_t) V_{t+1} + c_t G_{t+1}],
    c_t = lam (1 - episode_end_t).

    After the last row G is unknown, and V takes its place.

    Args:
        rewards: float32 [T, B].
        next_values: float32 [T, B], max_a Q(next_obs_t, a), with the true last observation where an
            episode ended.
        terminated: bool [T, B], true where the game is over.
        episode_end: bool [T, B], true where an episode was terminated or truncated.
        gamma: discount factor.
        lam: 0 uses V alone, 1 uses the rewards until the end of the episode or of the rollout.
    Returns: float32 [T, B].
    Source: Gallici et al. 2024 (PQN); Peng & Williams 1996. Traces are not cut at exploratory
    actions.
    """
    returns = np.empty_like(rewards)
    following = next_values[-1]
    for t in reversed(range(len(rewards))):
        trace = lam * ~episode_end[t]
        mixed = (1 - trace) * next_values[t] + trace * following
        following = returns[t] = rewards[t] + gamma * ~terminated[t] * mixed
    return returns


def endless_advantages(rewards: _Floats, values: _Floats, *, gamma: float, lam: float) -> _Floats:
    """Advantages by generalised advantage estimation, as if no episode ended.

    A_t = d_t + gamma lam A_{t+1},  d_t = r_t + gamma V_{t+1} - V_t.

    After the last timestep V is that of the last one.

    Args:
        rewards: float32 [B, T].
        values: float32 [B, T], of the observation before each reward.
        gamma: discount factor.
        lam: 0 uses V alone, 1 uses the rewards until the end of the rollout.
    Returns: float32 [B, T].
    Source: Schulman et al. 2016; without ends, Burda et al. 2018.
    """
    advantages = np.zeros_like(rewards)
    ahead = np.zeros(len(rewards), np.float32)
    following = values[:, -1]
    for step in reversed(range(rewards.shape[1])):
        delta = rewards[:, step] + gamma * following - values[:, step]
        ahead = delta + gamma * lam * ahead
        advantages[:, step] = ahead
        following = values[:, step]
    return advantages


def discounted_returns(rewards: _Floats, ends: NDArray[np.bool_], *, gamma: float) -> _Floats:
    """Return r_t + gamma r_{t+1} + ... up to the end of the episode, float32 [T].

    Args:
        rewards: float32 [T], of one episode after the other.
        ends: bool [T], true for the last timestep of each.
    """
    returns = np.empty_like(rewards)
    following = np.float32(0)
    for t in reversed(range(len(rewards))):
        following = returns[t] = rewards[t] + gamma * (0 if ends[t] else following)
    return returns


def discounted_sums(rewards: _Floats, lengths: NDArray[np.int64], *, gamma: float) -> _Floats:
    """Sum the first `lengths` of rewards [batch, n_step], discounted, to float32 [batch].

    The formula is that of SB3's NStepReplayBuffer, in float32.
    """
    n_step = rewards.shape[1]
    discounts = gamma ** np.arange(n_step, dtype=np.float32)
    counts = np.arange(n_step) < lengths[:, None]
    summed: _Floats = (rewards * discounts * counts).sum(axis=1)
    return summed
