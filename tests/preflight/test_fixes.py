import functools
from typing import Any

import pytest

from game_rl.config.schema import RunConfig
from game_rl.preflight.fixes import (
    Fix,
    apply_fix,
    first_fix,
    larger_n_envs,
    smaller_batch_sizes,
    smaller_micro_batch_sizes,
    smaller_n_envs,
    smaller_n_steps,
    smallest_fix,
)
from game_rl.preflight.memory import together
from tests.preflight.conftest import FACTS, make_config


def is_valid(config: RunConfig, key: str, value: int) -> bool:
    return apply_fix(config, Fix(key, value)) is not None


def test_a_fix_changes_one_key_and_nothing_else() -> None:
    config = make_config()
    changed = apply_fix(config, Fix("algorithm.n_steps", 128))
    assert changed == make_config(algorithm__n_steps=128)
    assert config == make_config()


def test_a_fix_that_makes_the_config_invalid_is_none() -> None:
    assert apply_fix(make_config(), Fix("algorithm.batch_size", 1_000_000)) is None


@pytest.mark.parametrize(
    ("n_envs", "algorithm"),
    [
        (6, {"n_steps": 64, "batch_size": 32}),
        (8, {"n_steps": 64, "batch_size": 64, "memory": {"sequence": 16}}),
        (5, {"n_steps": 96, "batch_size": 120, "memory": {"sequence": 24}}),
        (1, {"n_steps": 64, "batch_size": 64, "memory": {"sequence": 64}}),
    ],
)
def test_candidates_are_all_values_that_keep_the_config_valid(
    n_envs: int, algorithm: dict[str, Any]
) -> None:
    config = make_config(env__n_envs=n_envs, algorithm=algorithm, evaluation__every_timesteps=9999)
    batch_sizes = range(algorithm["batch_size"] - 1, 1, -1)
    n_steps = range(algorithm["n_steps"] - 1, 0, -1)
    keys = {
        "algorithm.batch_size": (smaller_batch_sizes(config), batch_sizes),
        "algorithm.n_steps": (smaller_n_steps(config), n_steps),
        "env.n_envs": (smaller_n_envs(config), range(n_envs - 1, 0, -1)),
    }
    for key, (found, everything) in keys.items():
        assert list(found) == [value for value in everything if is_valid(config, key, value)]
    larger = [n for n in range(2 * n_envs, n_envs, -1) if is_valid(config, "env.n_envs", n)]
    assert list(larger_n_envs(config, 2 * n_envs)) == larger


def test_parts_of_a_batch_are_halved() -> None:
    config = make_config(algorithm={"n_steps": 64, "batch_size": 128})
    for now, smaller in (
        (128, [64, 32, 16]),
        (100, [64, 32, 16]),
        (17, [16]),
        (16, []),
        (2, []),
    ):
        assert list(smaller_micro_batch_sizes(config, now)) == smaller


def test_parts_of_a_batch_with_a_memory_are_whole_sequences() -> None:
    algorithm = {"n_steps": 96, "batch_size": 192, "memory": {"sequence": 12}}
    config = make_config(algorithm=algorithm)
    for now, smaller in ((192, [96, 48, 24]), (96, [48, 24]), (24, []), (12, [])):
        found = smaller_micro_batch_sizes(config, now)
        assert list(found) == smaller
        for size in found:
            changed = apply_fix(config, Fix("algorithm.micro_batch_size", size))
            assert changed is not None
            assert together(changed, FACTS) == size  # none is rounded to another one


def test_the_smallest_change_is_the_first_that_a_scan_finds() -> None:
    config = make_config(algorithm={"n_steps": 4096, "batch_size": 64})
    for limit in (1, 8, 100, 1000, 4095):
        fix = smallest_fix(
            config,
            "algorithm.n_steps",
            smaller_n_steps(config),
            functools.partial(lambda limit, changed: changed.algorithm.n_steps <= limit, limit),
        )
        scanned = next((n for n in smaller_n_steps(config) if n <= limit), None)
        assert fix == (None if scanned is None else Fix("algorithm.n_steps", scanned))


def test_the_smallest_change_of_a_rollout_of_sequences_is_found_as_well() -> None:
    algorithm = {"n_steps": 65_536, "batch_size": 256, "memory": {"sequence": 256}}
    values = {"total_timesteps": 10**8, "evaluation__every_timesteps": 10**8}
    config = make_config(
        env__n_envs=256, algorithm=algorithm, checkpoints__every_timesteps=10**8, **values
    )
    for limit in (256, 18_700, 65_535):
        fix = smallest_fix(
            config,
            "algorithm.n_steps",
            smaller_n_steps(config),
            functools.partial(lambda limit, changed: changed.algorithm.n_steps <= limit, limit),
        )
        assert fix == Fix("algorithm.n_steps", limit // 256 * 256)


def test_invalid_fixes_are_passed_over() -> None:
    fixes = [Fix("env.n_envs", 0), Fix("env.observation.size", "huge"), Fix("env.n_envs", 4)]
    assert first_fix(make_config(), fixes, lambda _: True) == Fix("env.n_envs", 4)
