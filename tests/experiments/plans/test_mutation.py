"""Mutation: bounds, symmetry on a log scale, discounts, schedules."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.experiments.population_config import MutationConfig
from game_rl.experiments.plans.evolution import mutated

RATE = "algorithm.learning_rate"
GAMMA = "algorithm.gamma"


def rule(
    low: float = 0.8, high: float = 1.25, bounds: tuple[float, float] = (0, 10)
) -> MutationConfig:
    return MutationConfig(factor=(low, high), bounds=bounds)


def draw(values: dict, rules: dict, seed: int = 0) -> dict:
    return mutated(values, rules, np.random.default_rng(seed))


@given(
    st.floats(1e-6, 5),
    st.floats(0.1, 1),
    st.floats(1, 10),
    st.tuples(st.floats(1e-7, 1), st.floats(1.5, 20)),
    st.integers(0, 10**6),
)
def test_a_value_stays_in_bounds_and_moves_by_a_factor_in_range(
    value: float, low: float, high: float, bounds: tuple[float, float], seed: int
) -> None:
    new = draw({RATE: value}, {RATE: rule(low, high, bounds)}, seed)[RATE]
    assert bounds[0] <= new <= bounds[1]
    if bounds[0] < new < bounds[1]:
        assert low * (1 - 1e-12) <= new / value <= high * (1 + 1e-12)


def test_factors_are_even_on_a_log_scale() -> None:
    """Of U(-a, a): mean 0, variance a^2 / 3; half of them lower the value."""
    generator, a = np.random.default_rng(0), log(1.25)
    moves = [
        log(mutated({RATE: 1.0}, {RATE: rule()}, generator)[RATE])  # type: ignore[arg-type]
        for _ in range(20_000)
    ]
    assert abs(np.mean(moves)) < 4 * a / (3 * 20_000) ** 0.5
    assert np.var(moves) == pytest.approx(a * a / 3, rel=0.03)
    assert abs(sum(move < 0 for move in moves) - 10_000) < 4 * 5_000**0.5


@given(st.floats(0.5, 0.9999), st.integers(0, 10**6))
def test_a_discount_moves_as_its_distance_from_one(gamma: float, seed: int) -> None:
    rules = {GAMMA: rule(bounds=(0.1, 0.99999))}
    distance = 1 - draw({GAMMA: gamma}, rules, seed)[GAMMA]
    plain = draw({RATE: 1 - gamma}, {RATE: rule()}, seed)[RATE]
    if 1e-5 < plain < 0.9:
        assert distance == pytest.approx(plain, rel=1e-6)


@given(st.floats(1e-5, 1), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([0.5, 2.0]))
def test_a_schedule_is_scaled_whole_even_where_its_start_meets_a_bound(
    start: float, end: float, seed: int, most: float
) -> None:
    new = draw(
        {RATE: {"start": start, "end": end}}, {RATE: rule(bounds=(1e-6, most * start))}, seed
    )[RATE]
    assert new["start"] <= most * start
    assert new["end"] * start == pytest.approx(end * new["start"])


def test_each_key_draws_a_factor_of_its_own() -> None:
    rules = {RATE: rule(), "algorithm.ent_coef": rule()}
    new = draw({RATE: 1.0, "algorithm.ent_coef": 1.0}, rules)
    assert new[RATE] != new["algorithm.ent_coef"]


def test_the_same_generator_gives_the_same_values() -> None:
    assert draw({RATE: 0.3}, {RATE: rule()}, 7) == draw({RATE: 0.3}, {RATE: rule()}, 7)
