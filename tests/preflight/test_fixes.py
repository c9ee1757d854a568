import functools

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
from tests.preflight.conftest import make_config


def is_valid(config: RunConfig, key: str, value: int) -> bool:
    return apply_fix(config, Fix(key, value)) is not None


def test_a_fix_changes_one_key_and_nothing_else() -> None:
    config = make_config()
    changed = apply_fix(config, Fix("algorithm.n_steps", 128))
    assert changed == make_config(algorithm__n_steps=128)
    assert config == make_config()


def test_a_fix_that_makes_the_config_invalid_is_none() -> None:
    assert apply_fix(make_config(), Fix("algorithm.batch_size", 1_000_000)) is None


def test_candidates_are_all_values_that_keep_the_config_valid() -> None:
    config = make_config(
        env__n_envs=6, algorithm={"n_steps": 64, "batch_size": 32}, evaluation__every_timesteps=9999
    )
    keys = {
        "algorithm.batch_size": (smaller_batch_sizes(config), range(31, 1, -1)),
        "algorithm.n_steps": (smaller_n_steps(config), range(63, 0, -1)),
        "env.n_envs": (smaller_n_envs(config), range(5, 0, -1)),
    }
    for key, (found, everything) in keys.items():
        assert list(found) == [value for value in everything if is_valid(config, key, value)]
    assert list(larger_n_envs(config, 12)) == [12, 11, 10, 9, 8, 7]


def test_parts_of_a_batch_are_halved() -> None:
    config = make_config(algorithm={"n_steps": 64, "batch_size": 128})
    for together, smaller in (
        (128, [64, 32, 16]),
        (100, [64, 32, 16]),
        (17, [16]),
        (16, []),
        (2, []),
    ):
        assert list(smaller_micro_batch_sizes(config, together)) == smaller


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


def test_invalid_fixes_are_passed_over() -> None:
    fixes = [Fix("env.n_envs", 0), Fix("env.observation.size", "huge"), Fix("env.n_envs", 4)]
    assert first_fix(make_config(), fixes, lambda _: True) == Fix("env.n_envs", 4)
