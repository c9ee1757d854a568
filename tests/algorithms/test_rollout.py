"""What PPO hands on, against what a callback sees of the same vec steps; PQN's is in test_pqn."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.rollout import Decision, vec_steps
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.conftest import Witness
from tests.algorithms.test_ppo import N_STEPS, arrays, make_in_halves
from tests.algorithms.test_pqn import LimitedEnv, Recorder
from tests.algorithms.test_pqn import vec_env as plain_vec_env
from tests.tiny_env import FRAME


def played(env: VecEnv, recorder: Recorder | None) -> tuple[list[Any], list[Any]]:
    """Three rollouts, and what a callback sees of them."""
    model, witness = make_in_halves(env), Witness()  # type: ignore[arg-type]
    assert isinstance(model, LeanPPO)
    model.feeds = () if recorder is None else (recorder,)
    model._setup_learn(10**6, witness)
    rollouts = []
    for _ in range(3):
        model.collect_rollouts(env, witness, model.rollout_buffer, N_STEPS)
        rollouts.append(arrays(model))
    return rollouts, witness.seen


def true_next(new_obs: NDArray[np.uint8], infos: list[dict[str, Any]]) -> NDArray[np.uint8]:
    lasts = [info.get("terminal_observation") for info in infos]
    return np.stack([o if last is None else last for o, last in zip(new_obs, lasts, strict=True)])


def assert_feed_is_what_was_seen(feed: Recorder, seen: list[Any]) -> None:
    outcomes = [item for item in seen if isinstance(item, list)]
    infos = [item[1] for item in seen if isinstance(item, tuple)]
    assert len(feed.steps) == len(outcomes) == 3 * N_STEPS
    before: NDArray[np.uint8] | None = None
    for step, (rewards, dones, new_obs), info in zip(feed.steps, outcomes, infos, strict=True):
        cut = np.array([bool(one.get("TimeLimit.truncated")) for one in info])
        np.testing.assert_array_equal(step["rewards"], rewards)
        np.testing.assert_array_equal(step["terminated"], dones & ~cut)
        np.testing.assert_array_equal(step["truncated"], dones & cut)
        np.testing.assert_array_equal(step["next_observations"], true_next(new_obs, info))
        if before is not None:
            np.testing.assert_array_equal(step["observations"], before)
        before = new_obs


def test_a_feed_gets_raw_rewards_and_the_true_last_observation(vec_env: HalvedVecEnv) -> None:
    feed = Recorder()
    rollouts, seen = played(vec_env, feed)
    assert_feed_is_what_was_seen(feed, seen)
    actions = np.concatenate([rollout["actions"] for rollout in rollouts])
    np.testing.assert_array_equal(feed.stacked("actions"), actions.reshape(3 * N_STEPS, -1))
    stored = np.concatenate([rollout["rewards"] for rollout in rollouts])
    cut = feed.stacked("truncated")
    assert np.array_equal(stored != feed.stacked("rewards"), cut), "SB3's bootstrap is in there"


def test_a_feed_changes_no_rollout(vec_env: HalvedVecEnv) -> None:
    vec_env.seed(3)
    without = copy.deepcopy(played(vec_env, None))
    vec_env.seed(3)
    np.testing.assert_equal(played(vec_env, Recorder()), without)


def test_on_any_other_vec_env_the_rollout_is_sb3s_with_a_feed_too() -> None:
    feed = Recorder()
    without = played(plain_vec_env(LimitedEnv, 3), None)
    found = played(plain_vec_env(LimitedEnv, 3), feed)
    np.testing.assert_equal(found[1], without[1])
    for ours, theirs in zip(found[0], without[0], strict=True):
        for name, array in theirs.items():  # SB3 multiplies gamma and the last value in float32
            np.testing.assert_allclose(ours[name], array, rtol=1e-5, atol=1e-6, err_msg=name)
    assert_feed_is_what_was_seen(feed, found[1])


PACKING = FramePacking(FRAME)
FORMAT = ObservationFormat(PACKING, 2)


def decide(observations: NDArray[Any], *_: object) -> Decision:
    n = len(observations)
    return Decision(np.ones(n, np.int64), torch.zeros(n), torch.zeros(n))


def assert_frames_are_those_of_the_stacks(env: VecEnv) -> None:
    observations: Any = env.reset()
    begins = np.ones(env.num_envs, np.bool_)
    for n_steps in (20, 1, 20):
        steps = vec_steps(
            env, observations, decide, n_steps, begins=begins, observation_format=FORMAT
        )
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
    begins = np.ones(vec_env.num_envs, np.bool_)
    for _ in range(2):
        steps = vec_steps(
            vec_env, observations, decide, 5, begins=begins, observation_format=FORMAT
        )
        step = next(iter(steps))
    expected = [PACKING.pack(stack[-1:]) for stack in observations]
    np.testing.assert_array_equal(step.frames, expected)


@pytest.mark.parametrize("bits", [2, 4])
def test_a_frame_that_the_packing_cannot_hold_is_refused(bits: int) -> None:
    env = plain_vec_env(LimitedEnv, 2)
    observation_format = ObservationFormat(FramePacking(FRAME, bits=bits), 2)  # type: ignore[arg-type]
    observations: Any = env.reset()
    steps = vec_steps(
        env,
        observations,
        decide,
        1,
        begins=np.ones(2, np.bool_),
        observation_format=observation_format,
    )
    with pytest.raises(ValueError, match=f"{bits} bits a pixel cannot hold"):
        next(iter(steps))
