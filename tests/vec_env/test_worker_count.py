"""Numbers of processes, and that the vec envs start as many."""

from collections.abc import Callable

import pytest
from stable_baselines3.common.vec_env import VecEnv

from game_rl.config.schema import EnvConfig
from game_rl.games.definition import load_game
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.make_vec_env import make_training_env, make_vec_env
from game_rl.vec_env.workers import evaluation_workers, training_workers


@pytest.mark.parametrize(
    ("n_envs", "cpus", "expected"), [(8, 1, 2), (8, 2, 2), (64, 16, 30), (3, 16, 3), (1, 4, 1)]
)
def test_one_cpu_is_left_to_the_network(n_envs: int, cpus: int, expected: int) -> None:
    assert training_workers(None, n_envs=n_envs, cpus=cpus) == expected


@pytest.mark.parametrize(
    ("n_envs", "cpus", "expected"), [(8, 1, 1), (8, 2, 2), (64, 16, 16), (3, 16, 3)]
)
def test_an_evaluation_has_a_process_for_each_cpu(n_envs: int, cpus: int, expected: int) -> None:
    assert evaluation_workers(None, n_envs=n_envs, cpus=cpus) == expected


@pytest.mark.parametrize("count", [training_workers, evaluation_workers])
@pytest.mark.parametrize(("wanted", "expected"), [(1, 1), (5, 5), (9, 6)])
def test_a_number_in_the_config_counts_up_to_the_number_of_envs(
    count: Callable[..., int], wanted: int, expected: int
) -> None:
    assert count(wanted, n_envs=6, cpus=2) == expected


@pytest.mark.parametrize("n_workers", [None, 1, 3])
def test_vec_envs_start_so_many_processes(n_workers: int | None) -> None:
    config, game = EnvConfig(n_envs=4, n_workers=n_workers), load_game("duel")
    cpus = effective_cpus()
    training = make_training_env(config, game, seed=0)
    assert _closed(training) == training_workers(n_workers, n_envs=4, cpus=cpus)
    evaluation = make_vec_env(config, game, n_envs=2, seed=0)
    assert _closed(evaluation) == evaluation_workers(n_workers, n_envs=2, cpus=cpus)


def _closed(vec_env: VecEnv) -> int:
    """How many processes it had."""
    n_processes = len(vec_env.unwrapped.processes)
    vec_env.close()
    return n_processes
