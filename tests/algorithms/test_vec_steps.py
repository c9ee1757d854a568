"""The frames of each vec step against the stacks that were decided on and that followed."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.rollout import Decision, vec_steps
from game_rl.envs.packing import FramePacking
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.test_pqn import LimitedEnv
from tests.algorithms.test_pqn import vec_env as plain_vec_env
from tests.tiny_env import FRAME

PACKING = FramePacking(FRAME)


def decide(observations: NDArray[Any]) -> Decision:
    n = len(observations)
    return Decision(np.ones(n, np.int64), torch.zeros(n), torch.zeros(n))


def assert_frames_are_those_of_the_stacks(env: VecEnv) -> None:
    observations: Any = env.reset()
    for n_steps in (20, 1, 20):
        steps = vec_steps(env, observations, decide, n_steps, packing=PACKING)
        for step in steps:
            stacks, _, dones, infos = step.outcome
            lasts = [
                info["terminal_observation"] if done else stack
                for stack, done, info in zip(stacks, dones, infos, strict=True)
            ]
            for frames, seen in ((step.frames, observations), (step.next_frames, lasts)):
                expected = [PACKING.pack(stack[-1:]) for stack in seen]
                np.testing.assert_array_equal(frames, expected)
            observations = stacks


def test_frames_of_halves(vec_env: HalvedVecEnv) -> None:
    assert_frames_are_those_of_the_stacks(vec_env)


def test_frames_of_any_other_vec_env() -> None:
    assert_frames_are_those_of_the_stacks(plain_vec_env(LimitedEnv, 3))


def test_a_rollout_that_was_broken_off_leaves_no_frames_to_the_next(vec_env: HalvedVecEnv) -> None:
    """The learner has not seen the vec step in which its callback ended the rollout."""
    observations: Any = vec_env.reset()
    next(iter(vec_steps(vec_env, observations, decide, 5, packing=PACKING)))
    step = next(iter(vec_steps(vec_env, observations, decide, 5, packing=PACKING)))
    expected = [PACKING.pack(stack[-1:]) for stack in observations]
    np.testing.assert_array_equal(step.frames, expected)


@pytest.mark.parametrize("bits", [2, 4])
def test_a_frame_that_the_packing_cannot_hold_is_refused(bits: int) -> None:
    env = plain_vec_env(LimitedEnv, 2)
    packing = FramePacking(FRAME, bits=bits)  # type: ignore[arg-type]
    observations: Any = env.reset()
    with pytest.raises(ValueError, match=f"{bits} bits a pixel cannot hold"):
        next(iter(vec_steps(env, observations, decide, 1, packing=packing)))
