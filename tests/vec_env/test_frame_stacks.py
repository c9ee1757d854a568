"""FrameStacks against lists of every frame of every episode."""

import functools
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import WorkerError
from game_rl.games.definition import load_game
from game_rl.vec_env.frame_stacks import FrameStacks, stacked_space
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.make_vec_env import make_training_env, restore_vec_env, save_vec_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests import tiny_env
from tests.tiny_env import TinyEnv
from tests.vec_env.envs import SHAPE, FourShades, RandomEpisodes, Spotted

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
def test_what_is_no_picture_is_not_stacked(space: spaces.Space[Any]) -> None:
    assert stacked_space(space, 1) is space
    with pytest.raises(ValueError, match=r"only uint8 pictures \[C, H, W\] can be stacked, not"):
        stacked_space(space, 2)


Outcome = tuple[Any, Any, Any, list[dict[str, Any]]]
BYTES, SHADES = (ObservationFormat(FramePacking(SHAPE, bits=bits), 1) for bits in (8, 2))
KINDS = pytest.mark.parametrize(
    ("env_fn", "packing"), [(RandomEpisodes, BYTES), (FourShades, SHADES)]
)


def newest(stacks: np.ndarray, packing: ObservationFormat) -> np.ndarray:
    return np.stack([packing.pack(stack[-packing.frame_shape[0] :]) for stack in stacks])


def reached(outcome: Outcome, packing: ObservationFormat) -> np.ndarray:
    observations, _, dones, infos = outcome
    lasts = [
        info["terminal_observation"] if done else o
        for o, done, info in zip(observations, dones, infos, strict=True)
    ]
    return newest(np.stack(lasts), packing)


def assert_packed(vec_env: SharedMemoryVecEnv, outcome: Outcome) -> None:
    frames, packing = vec_env.packed_frames, vec_env.packing
    assert frames is not None
    assert packing is not None
    np.testing.assert_array_equal(frames.shown, newest(outcome[0], packing))
    np.testing.assert_array_equal(frames.reached, reached(outcome, packing))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("frame_stack", [1, 3])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_they_are_the_newest_frames_and_the_last_ones_of_episodes(
    env_fn: Any, packing: ObservationFormat, frame_stack: int, n_workers: int
) -> None:
    vec_env = SharedMemoryVecEnv(
        [env_fn] * 5, frame_stack=frame_stack, packing=packing, n_workers=n_workers
    )
    oracle = VecFrameStack(DummyVecEnv([env_fn] * 5), frame_stack, channels_order="first")
    rng, n_ended = np.random.default_rng(0), 0
    with closing(vec_env):
        for env in (vec_env, oracle):
            env.seed(7)
        observations: Any = vec_env.reset()
        np.testing.assert_array_equal(observations, oracle.reset())
        assert vec_env.packed_frames is not None
        for _ in range(300):
            held = vec_env.packed_frames.shown
            expected_held = newest(observations, packing)
            actions = rng.integers(4, size=5)
            outcome: Any = vec_env.step(actions)
            assert_packed(vec_env, outcome)
            np.testing.assert_array_equal(
                held, expected_held, "one step later they are still there"
            )
            expected: Any = oracle.step(actions)
            np.testing.assert_array_equal(outcome[0], expected[0])
            np.testing.assert_array_equal(reached(outcome, packing), reached(expected, packing))
            observations = outcome[0]
            n_ended += int(np.count_nonzero(outcome[2]))
    assert n_ended > 50


def test_without_a_packing_there_are_none() -> None:
    with closing(SharedMemoryVecEnv([RandomEpisodes])) as vec_env:
        vec_env.reset()
        vec_env.step(np.zeros(1, int))
        assert vec_env.packed_frames is None


def test_a_packing_of_other_frames_is_refused() -> None:
    with pytest.raises(ValueError, match=r"for frames \(1, 2, 2\), not \(2, 6, 5\)"):
        SharedMemoryVecEnv([RandomEpisodes], packing=ObservationFormat(FramePacking((1, 2, 2)), 1))


@pytest.mark.parametrize("where", ["first", "before", "last"])
def test_a_frame_that_cannot_be_packed_is_an_error_that_names_its_env(where: str) -> None:
    env_fns: list[Any] = [FourShades, FourShades, functools.partial(Spotted, where)]
    vec_env = SharedMemoryVecEnv(env_fns, packing=SHADES, n_workers=2)
    said = r"env 2 raised ValueError: a frame has a pixel of 99, which 2 bits .* hardware: cgb"
    with closing(vec_env), pytest.raises(WorkerError, match=said):
        three_steps(vec_env)


def three_steps(vec_env: SharedMemoryVecEnv) -> None:
    vec_env.reset()
    for _ in range(3):
        vec_env.step(np.zeros(3, int))


# ---------------------------------------------------------------------- halves


@pytest.fixture
def halves() -> Iterator[HalvedVecEnv]:
    parts = (
        SharedMemoryVecEnv([FourShades] * n, n_workers=1, frame_stack=2, packing=SHADES)
        for n in (2, 1)
    )
    with closing(HalvedVecEnv(*parts)) as vec_env:
        vec_env.seed(0)
        yield vec_env


def test_those_of_halves_are_joined_and_stay(halves: HalvedVecEnv) -> None:
    halves.reset()
    held: list[Any] = []
    for _ in range(60):
        outcome: Any = (
            halves.step(np.zeros(3, int)) if held else (halves.reset(), 0, np.zeros(3), [{}] * 3)
        )
        frames = halves.packed_frames(outcome[0])
        assert frames is not None
        held.append((frames, newest(outcome[0], SHADES), reached(outcome, SHADES)))
    for frames, shown, ends in held:
        np.testing.assert_array_equal(frames.shown, shown)
        np.testing.assert_array_equal(frames.reached, ends)


def test_nobody_gets_those_of_other_observations(halves: HalvedVecEnv) -> None:
    before = halves.reset()
    newest_ = halves.step(np.zeros(3, int))[0]
    assert halves.packed_frames(before) is None
    assert halves.packed_frames(newest_.copy()) is None
    assert halves.packed_frames(newest_) is not None


def test_halves_that_pack_in_different_ways_have_no_packing() -> None:
    parts = (
        SharedMemoryVecEnv([FourShades], n_workers=1, packing=packing)
        for packing in (SHADES, BYTES)
    )
    with closing(HalvedVecEnv(*parts)) as vec_env:
        assert vec_env.packing is None


def test_observations_of_halves_never_change_afterwards(halves: HalvedVecEnv) -> None:
    """Also where one half plays more often than the other."""
    held, rng = [halves.reset()], np.random.default_rng(0)
    copies = [held[0].copy()]
    for _ in range(40):
        number = int(rng.integers(2))
        half = halves.halves[number]
        half.step_async(np.zeros(half.num_envs, int))
        held.append(half.step_wait()[0])
        copies.append(held[-1].copy())
        held.append(halves.step(np.ones(3, int))[0])
        copies.append(held[-1].copy())
    np.testing.assert_equal(held, copies)


# ---------------------------------------------------------------------- deaths and resuming


def kill(vec_env: HalvedVecEnv, number: int) -> None:
    victim = vec_env.processes[number]
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()


@pytest.mark.parametrize("number", [0, 1])
def test_an_episode_that_a_dead_worker_ends_ends_with_what_was_seen_last(
    halves: HalvedVecEnv, number: int
) -> None:
    halves.reset()
    for _ in range(5):
        observations: Any = halves.step(np.zeros(3, int))[0]
    kill(halves, number)
    outcome: Any = halves.step(np.zeros(3, int))
    lost = [0, 1] if number == 0 else [2]
    frames = halves.packed_frames(outcome[0])
    assert frames is not None
    np.testing.assert_array_equal(frames.reached[lost], newest(observations, SHADES)[lost])
    np.testing.assert_array_equal(frames.reached, reached(outcome, SHADES))
    np.testing.assert_array_equal(frames.shown, newest(outcome[0], SHADES))


@pytest.mark.parametrize("size", ["half", "full"])
@pytest.mark.parametrize("colour", ["grey", "rgb"])
def test_restored_envs_go_on_with_packed_frames(size: str, colour: str) -> None:
    config = EnvConfig.model_validate(
        {
            "n_envs": 3,
            "n_workers": 2,
            "max_episode_timesteps": 6,
            "observation": {"size": size, "colour": colour},
        }
    )
    game = load_game("duel")
    packing = make_observation_format(config, game)
    vec_envs = [make_training_env(config, game, seed=1) for _ in range(2)]
    one, other = (vec_env for vec_env in vec_envs if isinstance(vec_env, HalvedVecEnv))
    with closing(one), closing(other):
        one.reset()
        observations: Any = one.step(np.zeros(3, int))[0]
        state = save_vec_env(one, observations)
        assert state is not None
        restore_vec_env(other, state)
        kill(other, 0)
        for step in range(14):
            outcome: Any = other.step(np.zeros(3, int))
            frames = other.packed_frames(outcome[0])
            assert frames is not None
            np.testing.assert_array_equal(frames.shown, newest(outcome[0], packing))
            np.testing.assert_array_equal(frames.reached, reached(outcome, packing))
            if step == 0:
                np.testing.assert_array_equal(frames.reached[:2], newest(observations, packing)[:2])
