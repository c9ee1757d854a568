"""FrameStacks against lists of every frame of every episode."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from game_rl.vec_env.frame_stacks import FrameStacks, stacked_space
from tests import tiny_env
from tests.tiny_env import TinyEnv

FRAME = (2, 3, 1)


def naive_stack(episode: list[np.ndarray], size: int) -> np.ndarray:
    frames = [np.zeros(FRAME, np.uint8)] * size + episode
    return np.concatenate(frames[-size:])


@settings(deadline=None)
@given(
    size=st.integers(1, 5),
    n_envs=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    p_end=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_stacks_are_those_of_a_list_of_frames(
    size: int, n_envs: int, seed: int, p_end: float
) -> None:
    random = np.random.default_rng(seed)
    ring = random.integers(256, size=(size + 1, n_envs, *FRAME), dtype=np.uint8)
    stacks = FrameStacks(ring)
    stacks.begin_episode(slice(None))
    episodes = [[ring[stacks.newest, env].copy()] for env in range(n_envs)]
    for _ in range(3 * size):
        stacks.turn()
        ring[stacks.newest] = random.integers(256, size=ring.shape[1:])
        for env, frame in enumerate(ring[stacks.newest].copy()):
            if random.random() < p_end:
                last = random.integers(256, size=FRAME, dtype=np.uint8)
                expected = naive_stack([*episodes[env], last], size)
                np.testing.assert_array_equal(stacks.ending_with(env, last), expected)
                stacks.begin_episode(env)
                episodes[env] = []
            episodes[env].append(frame)
        expected = np.stack([naive_stack(episode, size) for episode in episodes])
        np.testing.assert_array_equal(stacks.all(), expected)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_stacks_of_one_env_are_what_sb3_would_have_stacked(size: int) -> None:
    oracle = VecFrameStack(DummyVecEnv([TinyEnv]), size, channels_order="first")
    oracle.seed(7)
    env = TinyEnv()
    ring = np.full((size + 1, 1, *tiny_env.FRAME), 255, np.uint8)
    stacks = FrameStacks(ring)
    ring[stacks.newest, 0], _ = env.reset(seed=7)
    stacks.begin_episode(0)
    np.testing.assert_array_equal(stacks.all(), oracle.reset())
    for _ in range(12):
        frame, _, over, _, _ = env.step(np.int64(1))
        if over:
            frame, _ = env.reset()
        stacks.turn()
        ring[stacks.newest, 0] = frame
        if over:
            stacks.begin_episode(0)
        np.testing.assert_array_equal(stacks.all(), oracle.step(np.array([1]))[0])
    assert stacked_space(env.observation_space, size) == oracle.observation_space


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_a_single_frame_can_have_any_shape(shape: tuple[int, ...]) -> None:
    ring = np.arange(4 * np.prod(shape, dtype=int), dtype=np.float32).reshape(2, 2, *shape)
    np.testing.assert_array_equal(FrameStacks(ring).all(), ring[0])
    np.testing.assert_array_equal(FrameStacks(ring).ending_with(1, ring[1, 1]), ring[1, 1])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (3, 3), np.uint8),
        spaces.Box(0, 1, FRAME, np.float32),
        spaces.Discrete(3),
    ],
)
def test_what_is_no_picture_is_not_stacked(space: spaces.Space) -> None:
    assert stacked_space(space, 1) is space
    with pytest.raises(ValueError, match=r"only uint8 pictures \[C, H, W\] can be stacked, not"):
        stacked_space(space, 2)
