"""The vec env of a real game."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
)

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.errors import UsageError
from game_rl.games.definition import Game, load_game
from game_rl.vec_env.make_vec_env import make_vec_env

CONFIG = EnvConfig(n_workers=2, frame_stack=3, max_episode_timesteps=40)


@pytest.fixture(scope="module")
def duel() -> Game:
    return load_game("duel")


def played(vec_env: VecEnv, n_steps: int) -> list[Any]:
    random = np.random.default_rng(5)
    seen: list[Any] = [vec_env.reset()]
    try:
        for _ in range(n_steps):
            actions = random.integers(vec_env.action_space.n, size=vec_env.num_envs)
            observations, rewards, dones, infos = vec_env.step(actions)
            for info in infos:
                info.get("episode", {}).pop("t", None)  # wall time
            seen += [observations.copy(), rewards, dones, infos]
    finally:
        vec_env.close()
    return seen


def test_duel_is_the_same_in_workers_and_in_the_vec_env_of_sb3(duel: Game) -> None:
    ours = make_vec_env(CONFIG, duel, n_envs=3, seed=4)
    env_fns = [functools.partial(make_env, CONFIG, duel)] * 3
    theirs = VecFrameStack(VecMonitor(DummyVecEnv(env_fns)), 3, channels_order="first")
    theirs.seed(4)
    np.testing.assert_equal(played(ours, 100), played(theirs, 100))


def test_it_is_worker_processes_then_monitor_then_frame_stack(duel: Game) -> None:
    vec_env = make_vec_env(CONFIG, duel, n_envs=3, seed=0)
    try:
        assert isinstance(vec_env, VecFrameStack)
        assert isinstance(vec_env.venv, VecMonitor)
        assert isinstance(vec_env.unwrapped, SubprocVecEnv)
        assert len(vec_env.unwrapped.processes) == 2
        one_frame = make_env(CONFIG, duel).observation_space.shape
        assert vec_env.observation_space.shape == (3 * one_frame[0], *one_frame[1:])
        assert vec_env.reset().shape == (3, *vec_env.observation_space.shape)
    finally:
        vec_env.close()


def test_another_seed_plays_another_game(duel: Game) -> None:
    first, second = (
        played(make_vec_env(CONFIG, duel, n_envs=2, seed=seed), 30) for seed in (1, 100)
    )
    assert any(not np.array_equal(a, b) for a, b in zip(first[::4], second[::4], strict=True))


def test_there_are_no_more_workers_than_envs(duel: Game) -> None:
    vec_env = make_vec_env(EnvConfig(n_workers=7), duel, n_envs=2, seed=0)
    try:
        assert len(vec_env.unwrapped.processes) == 2
    finally:
        vec_env.close()


def test_a_worker_that_plays_a_game_is_free_of_torch(duel: Game) -> None:
    vec_env = make_vec_env(CONFIG, duel, n_envs=1, seed=0)
    try:
        vec_env.reset()
        maps = Path(f"/proc/{vec_env.unwrapped.processes[0].pid}/maps").read_text()
        assert "pyboy" in maps
        assert "torch" not in maps
    finally:
        vec_env.close()


def test_a_config_that_the_game_cannot_meet_is_told_as_the_mistake_it_is(duel: Game) -> None:
    config = CONFIG.model_copy(update={"start_states": ("level_99",)})
    with pytest.raises(UsageError, match="level_99"):
        make_vec_env(config, duel, n_envs=2, seed=0)
