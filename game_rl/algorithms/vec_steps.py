"""The vec steps of a rollout: half of the envs play while the network answers the others."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.vec_env.halved_vec_env import HalvedVecEnv, Outcome


class Decision(NamedTuple):
    """What a network says to a batch of observations; a row for each."""

    actions: NDArray[np.int64]
    values: torch.Tensor
    log_probs: torch.Tensor


Decide = Callable[[NDArray[Any]], Decision]


def vec_steps(
    env: VecEnv, observations: NDArray[Any], decide: Decide, n_steps: int
) -> Iterator[tuple[Decision, Outcome]]:
    """Each of `n_steps` vec steps with what was decided in it.

    On a HalvedVecEnv the halves take turns: while the workers of one play, the network answers the
    other. Every action is the answer to the newest observation, and no half is ahead at the end.
    `decide` is asked for the first half and then for the second; on any other vec env for all.
    """
    if isinstance(env, HalvedVecEnv):
        yield from _overlapped(env, observations, decide, n_steps)
        return
    for _ in range(n_steps):
        decision = decide(observations)
        observations, rewards, dones, infos = env.step(decision.actions)  # type: ignore[assignment]  # no dict
        yield decision, (observations, rewards, dones, infos)


def _overlapped(
    env: HalvedVecEnv, observations: NDArray[Any], decide: Decide, n_steps: int
) -> Iterator[tuple[Decision, Outcome]]:
    first, second = env.halves
    halves = [observations[bounds] for bounds in env.bounds]
    decision = decide(halves[0])
    first.step_async(decision.actions)
    for step in range(n_steps):
        decisions = decision, decide(halves[1])  # the first half plays
        outcome = first.step_wait()
        second.step_async(decisions[1].actions)
        has_next = step + 1 < n_steps
        if has_next:
            decision = decide(outcome[0])  # the second half plays
        outcomes = outcome, second.step_wait()
        if has_next:
            first.step_async(decision.actions)
        halves = [outcome[0] for outcome in outcomes]
        yield _joined(*decisions), env.joined(*outcomes)


def _joined(first: Decision, second: Decision) -> Decision:
    return Decision(
        np.concatenate((first.actions, second.actions)),
        torch.cat((first.values, second.values)),
        torch.cat((first.log_probs, second.log_probs)),
    )
