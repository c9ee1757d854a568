"""Restored in another vec env, with other workers, everything goes on as it would have."""

import multiprocessing.forkserver
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv

from game_rl.config.schema import EnvConfig
from game_rl.games.definition import load_game
from game_rl.vec_env.make_vec_env import make_training_env
from game_rl.vec_env.vec_env_state import restore_vec_env, save_vec_env

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
        observations = vec_env.step(next(actions(1, 1)))[0]
        state = save_vec_env(vec_env, observations)
        expected = play_on(vec_env, 2, 90)
    assert state is not None
    with closing(training_env(restored_workers)) as vec_env:
        restore_vec_env(vec_env, state)
        assert play_on(vec_env, 2, 90) == expected


def test_saving_changes_nothing() -> None:
    with closing(training_env(2)) as one, closing(training_env(2)) as other:
        observations = one.reset()
        other.reset()
        assert save_vec_env(one, observations) is not None
        assert play_on(one, 0, 60) == play_on(other, 0, 60)


def test_a_worker_that_died_leaves_nothing_to_save_until_the_next_step() -> None:
    with closing(training_env(2)) as vec_env:
        observations = vec_env.reset()
        victim = vec_env.processes[0]  # type: ignore[attr-defined]
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        assert save_vec_env(vec_env, observations) is None
        observations = vec_env.step(next(actions(0, 1)))[0]
        assert save_vec_env(vec_env, observations) is not None


def test_a_worker_that_dies_is_restored_with_the_others() -> None:
    with closing(training_env(2)) as vec_env:
        observations = vec_env.reset()
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
        assert play_on(one, 0, 30) == play_on(other, 0, 30)
        assert one.worker_deaths == ()  # type: ignore[attr-defined]
