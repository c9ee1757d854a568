"""The vec env of a real game."""

import functools
import multiprocessing.forkserver
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
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
from game_rl.vec_env.make_vec_env import (
    make_training_env,
    make_vec_env,
    restore_vec_env,
    save_vec_env,
)
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.envs.example import fake_env
from tests.vec_env.envs import processes_of

EnvFn = Callable[[], gym.Env]

FRAME_STACK = 3
CONFIG = EnvConfig(n_workers=2, frame_stack=FRAME_STACK, max_episode_timesteps=300)


@pytest.fixture(scope="module")
def duel() -> Game:
    return load_game("duel")


def played(vec_env: VecEnv, n_steps: int) -> list[Any]:
    random = np.random.default_rng(5)
    assert isinstance(vec_env.action_space, spaces.Discrete)
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


def of_sb3(env_fns: list[EnvFn], seed: int) -> VecEnv:
    vec_env = VecFrameStack(VecMonitor(DummyVecEnv(env_fns)), FRAME_STACK, channels_order="first")
    vec_env.seed(seed)
    return vec_env


def ends(seen: list[Any]) -> set[tuple[bool, bool]]:
    """Which (done, truncated) have been met."""
    return {
        (bool(done), info["TimeLimit.truncated"])
        for dones, infos in zip(seen[3::4], seen[4::4], strict=True)
        for done, info in zip(dones, infos, strict=True)
    }


def test_duel_is_the_same_in_our_workers_and_in_the_vec_envs_of_sb3(duel: Game) -> None:
    seen = played(make_vec_env(CONFIG, duel, n_envs=3, seed=4), 2_000)
    env_fns: list[EnvFn] = [functools.partial(make_env, CONFIG, duel)] * 3
    assert ends(seen) == {(False, False), (True, False), (True, True)}
    np.testing.assert_equal(seen, played(of_sb3(env_fns, 4), 2_000))


@pytest.mark.slow
def test_the_fake_game_is_the_same_in_our_workers_and_in_the_vec_envs_of_sb3() -> None:
    env_fns: list[EnvFn] = [functools.partial(fake_env, max_episode_timesteps=60)] * 2
    ours = VecMonitor(SharedMemoryVecEnv(env_fns, n_workers=2, frame_stack=FRAME_STACK))
    ours.seed(7)
    seen = played(ours, 2_000)
    assert ends(seen) == {(False, False), (True, False), (True, True)}
    np.testing.assert_equal(seen, played(of_sb3(env_fns, 7), 2_000))


def test_it_is_worker_processes_that_stack_then_a_monitor(duel: Game) -> None:
    vec_env = make_vec_env(CONFIG, duel, n_envs=3, seed=0)
    try:
        assert isinstance(vec_env, VecMonitor)
        assert isinstance(vec_env.venv, SubprocVecEnv)
        assert len(processes_of(vec_env)) == 2
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
        assert len(processes_of(vec_env)) == 2
    finally:
        vec_env.close()


def test_a_worker_that_plays_a_game_is_free_of_torch(duel: Game) -> None:
    vec_env = make_vec_env(CONFIG, duel, n_envs=1, seed=0)
    try:
        vec_env.reset()
        maps = Path(f"/proc/{processes_of(vec_env)[0].pid}/maps").read_text(encoding="utf-8")
        assert "pyboy" in maps
        assert "torch" not in maps
    finally:
        vec_env.close()


def test_a_config_that_the_game_cannot_meet_is_told_as_the_mistake_it_is(duel: Game) -> None:
    config = CONFIG.model_copy(update={"start_states": ("level_99",)})
    with pytest.raises(UsageError, match="level_99"):
        make_vec_env(config, duel, n_envs=2, seed=0)


def test_an_episode_that_is_lost_with_its_worker_is_no_success(duel: Game) -> None:
    vec_env = make_vec_env(CONFIG, duel, n_envs=2, seed=0)
    vec_env.reset()
    process = processes_of(vec_env)[1]
    process.kill()
    process.join()
    infos = vec_env.step(np.zeros(2, int))[3]
    vec_env.close()
    assert [info.get("is_success") for info in infos] == [None, False]


N_ENVS = 5


def training_env(n_workers: int) -> VecEnv:
    config = EnvConfig(n_envs=N_ENVS, n_workers=n_workers, max_episode_timesteps=40, frame_skip=8)
    return make_training_env(config, load_game("duel"), seed=4)


def actions(seed: int, n_steps: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 6, N_ENVS) for _ in range(n_steps))


def play_on(vec_env: VecEnv, seed: int, n_steps: int) -> list[Any]:
    seen = []
    for chosen in actions(seed, n_steps):
        observations, rewards, dones, infos = vec_env.step(chosen)
        for info in infos:
            info.get("episode", {}).pop("t", None)  # seconds
            if "terminal_observation" in info:
                info["terminal_observation"] = info["terminal_observation"].tobytes()
        seen.append((observations.tobytes(), rewards.tolist(), dones.tolist(), infos))
    return seen


@pytest.mark.parametrize(("saved_workers", "restored_workers"), [(1, 1), (2, 2), (2, 3), (1, 3)])
def test_goes_on_as_it_would_have(saved_workers: int, restored_workers: int) -> None:
    with closing(training_env(saved_workers)) as vec_env:
        vec_env.reset()
        play_on(vec_env, 0, 37)
        observations: Any = vec_env.step(next(actions(1, 1)))[0]
        state = save_vec_env(vec_env, observations)
        expected = play_on(vec_env, 2, 90)
    assert state is not None
    with closing(training_env(restored_workers)) as vec_env:
        restore_vec_env(vec_env, state)
        assert play_on(vec_env, 2, 90) == expected


def test_saving_changes_nothing() -> None:
    with closing(training_env(2)) as one, closing(training_env(2)) as other:
        observations: Any = one.reset()
        other.reset()
        assert save_vec_env(one, observations) is not None
        assert play_on(one, 0, 60) == play_on(other, 0, 60)


def test_a_worker_that_died_leaves_nothing_to_save_until_the_next_step() -> None:
    with closing(training_env(2)) as vec_env:
        observations: Any = vec_env.reset()
        victim = processes_of(vec_env)[0]
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        assert save_vec_env(vec_env, observations) is None
        observations = vec_env.step(next(actions(0, 1)))[0]
        assert save_vec_env(vec_env, observations) is not None


def test_a_worker_that_dies_is_restored_with_the_others() -> None:
    with closing(training_env(2)) as vec_env:
        observations: Any = vec_env.reset()
        state = save_vec_env(vec_env, observations)
        expected = play_on(vec_env, 1, 20)
    assert state is not None
    with closing(training_env(2)) as vec_env:
        victim = vec_env.processes[1]  # type: ignore[attr-defined]
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        restore_vec_env(vec_env, state)
        assert play_on(vec_env, 1, 20) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_what_a_batch_system_sends_to_all_leaves_workers_and_their_server_alone(
    number: signal.Signals,
) -> None:
    with closing(training_env(2)) as one, closing(training_env(2)) as other:
        one.reset()
        other.reset()
        server = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        for pid in (server, *(process.pid for process in one.processes)):  # type: ignore[attr-defined]
            os.kill(pid, number)
        played_on = play_on(one, 0, 30)
        assert one.worker_deaths == ()  # type: ignore[attr-defined]
        assert played_on == play_on(other, 0, 30)
