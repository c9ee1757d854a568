"""The vec steps of a rollout: envs play while the network answers others."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.vec_env.halved_vec_env import HalfVecEnv, HalvedVecEnv, Outcome


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

    On a HalvedVecEnv each half is answered as soon as it has played and plays on at once, whether
    the other has played or not, and while the caller looks at what both did. Every action is the
    answer to the half's newest observation, and at the end both have played `n_steps`. `decide` is
    asked for the first half and then for the second; on any other vec env for all.
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
    def begun(half: HalfVecEnv, observations: NDArray[Any]) -> Decision:
        decision = decide(observations)
        half.step_async(decision.actions)
        return decision

    pairs = zip(env.halves, env.bounds, strict=True)
    decisions = [begun(half, observations[bounds]) for half, bounds in pairs]
    for step in range(n_steps):
        outcomes: list[Outcome] = []
        next_decisions: list[Decision] = []
        for half in env.halves:
            outcomes.append(half.step_wait())
            if step + 1 < n_steps:
                next_decisions.append(begun(half, outcomes[-1][0]))
        yield _joined(*decisions), env.joined(*outcomes)
        decisions = next_decisions


def _joined(first: Decision, second: Decision) -> Decision:
    return Decision(
        np.concatenate((first.actions, second.actions)),
        torch.cat((first.values, second.values)),
        torch.cat((first.log_probs, second.log_probs)),
    )
