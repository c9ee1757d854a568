"""Two halves against one vec env of all envs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.games.definition import load_game
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.make_vec_env import make_training_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.vec_env.envs import RandomEpisodes, processes_of

Make = Callable[[int, int], HalvedVecEnv]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[HalvedVecEnv] = []

    def _make(first: int, second: int) -> HalvedVecEnv:
        parts = (
            SharedMemoryVecEnv([RandomEpisodes] * n, n_workers=1, frame_stack=2)
            for n in (first, second)
        )
        made.append(HalvedVecEnv(*parts))
        return made[-1]

    yield _make
    for vec_env in made:
        vec_env.close()


def whole(n_envs: int) -> VecEnv:
    return VecMonitor(SharedMemoryVecEnv([RandomEpisodes] * n_envs, n_workers=1, frame_stack=2))


def played(vec_env: VecEnv, n_steps: int) -> list[Any]:
    vec_env.seed(11)
    random = np.random.default_rng(0)
    seen: list[Any] = []
    for step in range(n_steps):
        if step % (n_steps // 2) == 0:
            vec_env.set_options({"level": step})
            seen += [vec_env.reset(), list(vec_env.unwrapped.reset_infos)]
        actions = random.integers(4, size=vec_env.num_envs)
        observations, rewards, dones, infos = vec_env.step(actions)
        for info in infos:
            info.get("episode", {}).pop("t", None)  # wall time
        seen += [observations, rewards, dones, infos, list(vec_env.unwrapped.reset_infos)]
    vec_env.close()
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2)])
def test_two_halves_play_as_one_vec_env(make: Make, sizes: tuple[int, int]) -> None:
    np.testing.assert_equal(played(make(*sizes), 600), played(whole(sum(sizes)), 600))


def test_halves_that_take_turns_play_as_one_vec_env(make: Make) -> None:
    by_turns, together = make(2, 1), whole(3)
    for vec_env in (by_turns, together):
        vec_env.seed(3)
    np.testing.assert_equal(by_turns.reset(), together.reset())
    random = np.random.default_rng(0)
    first, second = by_turns.halves
    for _ in range(300):
        actions = random.integers(4, size=3)
        first.step_async(actions[by_turns.bounds[0]])
        outcome = first.step_wait()
        second.step_async(actions[by_turns.bounds[1]])
        seen = by_turns.joined(outcome, second.step_wait())
        expected = together.step(actions)
        for info in (*seen[3], *expected[3]):
            info.get("episode", {}).pop("t", None)
        np.testing.assert_equal(seen, expected)
        assert by_turns.reset_infos == together.unwrapped.reset_infos
    together.close()


def test_calls_reach_the_env_that_they_are_for(make: Make) -> None:
    vec_env = make(2, 3)
    oracle = DummyVecEnv([RandomEpisodes] * 5)
    for env in (vec_env, oracle):
        for number, index in enumerate([4, 0, 2]):
            env.set_attr("colour", 10 + number, index)
    everyone = None
    for indices in (everyone, 3, -1, [4, 0, 2], [1]):
        assert vec_env.get_attr("colour", indices) == oracle.get_attr("colour", indices)
        assert vec_env.env_method("add", 1, second=2, indices=indices) == oracle.env_method(
            "add", 1, second=2, indices=indices
        )
        assert vec_env.env_is_wrapped(Monitor, indices) == oracle.env_is_wrapped(Monitor, indices)
    np.testing.assert_equal(vec_env.get_images(), oracle.get_images())
    assert vec_env.has_attr("colour")
    assert not vec_env.has_attr("price")


def test_it_is_a_subproc_vec_env_with_the_workers_of_both_halves(make: Make) -> None:
    vec_env = make(2, 2)
    assert isinstance(vec_env, SubprocVecEnv)
    assert not vec_env.closed
    processes = vec_env.processes
    assert len(processes) == 2
    vec_env.close()
    vec_env.close()
    assert vec_env.closed
    assert not any(process.is_alive() for process in processes)


@pytest.mark.parametrize(
    ("n_envs", "n_workers", "sizes"), [(5, 3, [(3, 2), (2, 1)]), (4, 2, [(2, 1), (2, 1)])]
)
def test_a_training_s_envs_and_workers_are_halved(
    n_envs: int, n_workers: int, sizes: list[tuple[int, int]]
) -> None:
    config = EnvConfig(n_envs=n_envs, n_workers=n_workers)
    vec_env = make_training_env(config, load_game("duel"), seed=0)
    try:
        assert isinstance(vec_env, HalvedVecEnv)
        parts = [half.unwrapped for half in vec_env.halves]
        assert [(part.num_envs, len(processes_of(part))) for part in parts] == sizes
    finally:
        vec_env.close()


@pytest.mark.parametrize(("n_envs", "n_workers"), [(1, None), (4, 1)])
def test_what_cannot_be_halved_is_one_vec_env(n_envs: int, n_workers: int | None) -> None:
    config = EnvConfig(n_envs=n_envs, n_workers=n_workers)
    vec_env = make_training_env(config, load_game("duel"), seed=0)
    try:
        assert isinstance(vec_env.unwrapped, SharedMemoryVecEnv)
    finally:
        vec_env.close()
