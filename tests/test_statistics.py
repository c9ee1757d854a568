"""Permutation tests and their intervals, beside a plain enumeration and published figures."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.statistics import (
    holm,
    paired_values,
    percent,
    percentage,
    probability_of_superiority,
    unpaired_values,
    wilson_interval,
)


def on_paper(part: int, whole: int, digits: int) -> str:
    """100 part / whole, a half rounded up, with whole numbers alone."""
    scaled = (2 * 100 * 10**digits * part + whole) // (2 * whole)
    text = f"{scaled:0{digits + 1}}"
    return f"{text[: len(text) - digits]}.{text[-digits:]}" if digits else text


@pytest.mark.parametrize("digits", [0, 1])
def test_shares_are_rounded_as_on_paper(digits: int) -> None:
    for whole in range(1, 401):
        for part in range(whole + 1):
            assert percentage(part / whole, digits) == on_paper(part, whole, digits)


def test_shares_in_words() -> None:
    assert (percent(1 / 8), percent(1 / 8, 1), percent(-0.001)) == ("13%", "12.5%", "0%")
    assert percent(float("nan")) == "nan%"


def rejected_step_by_step(p_values: list[float], alpha: float) -> set[int]:
    """Holm's own words: go on with the next smallest p while it is at most alpha / (m - j)."""
    rejected: set[int] = set()
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > alpha / (len(p_values) - rank):
            break
        rejected.add(place)
    return rejected


def test_the_values_are_those_of_a_worked_example() -> None:
    """R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.integers(0, 1024).map(lambda n: n / 1024), max_size=8))
def test_adjusted_values_reject_what_the_steps_reject(p_values: list[float]) -> None:
    alpha = 0.05
    found = {place for place, p in enumerate(holm(p_values)) if p <= alpha + 1e-12}
    assert found == rejected_step_by_step(p_values, alpha)


def test_one_comparison_stays_as_it_is() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


# Whole numbers, so that the plain enumeration adds up without rounding.
SCORES = st.lists(st.integers(-8, 8), min_size=1, max_size=8)
DARWIN = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)  # eighths of an inch


def plain_paired_p(differences: list[int]) -> float:
    sums = [
        sum(sign * d for sign, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    tails = sum(s >= sums[0] for s in sums), sum(s <= sums[0] for s in sums)
    return min(1.0, 2 * min(tails) / len(sums))


def plain_unpaired_p(scores: list[int], others: list[int]) -> float:
    pool = scores + others
    observed = sum(scores) * len(others) - sum(others) * len(scores)
    found = []
    for chosen in combinations(range(len(pool)), len(scores)):
        total = sum(pool[place] for place in chosen)
        found.append(total * len(others) - (sum(pool) - total) * len(scores))
    tails = sum(s >= observed for s in found), sum(s <= observed for s in found)
    return min(1.0, 2 * min(tails) / len(found))


@given(SCORES)
def test_a_paired_p_value_is_that_of_every_pattern_of_signs(differences: list[int]) -> None:
    assert paired_values(differences).p_value() == pytest.approx(plain_paired_p(differences))


@given(SCORES.filter(lambda s: len(s) <= 5), SCORES.filter(lambda s: len(s) <= 5))
def test_an_unpaired_p_value_is_that_of_every_way_to_share_the_scores(
    scores: list[int], others: list[int]
) -> None:
    found = unpaired_values(scores, others)
    assert found.p_value() == pytest.approx(plain_unpaired_p(scores, others))


def test_the_p_value_of_darwins_maize_is_that_of_fisher() -> None:
    """Fisher 1935, 21: 863 of 32,768 patterns are as extreme on the side that was seen."""
    found = paired_values(DARWIN)
    assert found.is_exact
    assert found.p_value() == pytest.approx(2 * 863 / 32_768)


@pytest.mark.parametrize(("seeds", "smallest"), [(5, 0.0625), (8, 0.0078125)])
def test_so_many_paired_seeds_reach_no_smaller_p_value(seeds: int, smallest: float) -> None:
    found = paired_values([1.0 + seed for seed in range(seeds)])
    assert found.p_value() == found.smallest_p_value() == smallest


@pytest.mark.parametrize(("seeds", "patterns"), [(4, 70), (8, 12_870)])
def test_unpaired_seeds_have_so_many_regroupings(seeds: int, patterns: int) -> None:
    better = unpaired_values([10.0 + seed for seed in range(seeds)], range(seeds))
    assert better.patterns == patterns
    assert better.p_value() == pytest.approx(2 / patterns)


@given(SCORES, st.integers(-10, 10))
def test_a_paired_interval_holds_exactly_the_shifts_that_the_test_accepts(
    differences: list[int], shift: int
) -> None:
    interval = paired_values(differences).interval(0.8)
    p = plain_paired_p([d - shift for d in differences])
    if interval is None:
        assert p > 0.2
    else:
        assert (interval[0] <= shift <= interval[1]) == (p > 0.2)


@given(
    SCORES.filter(lambda s: len(s) <= 5), SCORES.filter(lambda s: len(s) <= 5), st.integers(-9, 9)
)
def test_an_unpaired_interval_holds_exactly_the_shifts_that_the_test_accepts(
    scores: list[int], others: list[int], shift: int
) -> None:
    interval = unpaired_values(scores, others).interval(0.9)
    p = plain_unpaired_p([score - shift for score in scores], others)
    if interval is None:
        assert p > 0.1
    else:
        assert (interval[0] <= shift <= interval[1]) == (p > 0.1)


@given(SCORES)
def test_the_one_sided_end_is_that_of_the_two_sided_interval_of_twice_the_error(
    differences: list[int],
) -> None:
    found = paired_values(differences)
    interval = found.interval(0.8)
    assert found.lower_end(0.9) == (None if interval is None else interval[0])


def test_equal_arms_have_a_p_value_of_one_and_an_interval_of_one_point() -> None:
    for found in (paired_values([0.0] * 8), unpaired_values([0.9] * 8, [0.9] * 8)):
        assert found.p_value() == 1.0
        assert found.interval() == (0.0, 0.0)


def test_rates_whose_sums_round_are_ties() -> None:
    rates = [0.1, 0.2, -0.3, 0.1, 0.2, -0.3]  # 0.1 + 0.2 - 0.3 is not 0 in binary
    assert paired_values(rates).p_value() == plain_paired_p([1, 2, -3, 1, 2, -3])


def test_drawn_regroupings_come_close_to_all_of_them() -> None:
    rng = np.random.default_rng(5)
    paired: Any = rng.normal(0.4, 1, 21)
    one: Any = rng.normal(0.6, 1, 12)
    two: Any = rng.normal(size=12)
    drawn = paired_values(paired)
    again = unpaired_values(one, two)
    assert not drawn.is_exact
    assert not again.is_exact
    # an independent way to the same figures: all sums of signs, by a meeting in the middle
    assert drawn.p_value() == pytest.approx(_all_signs_p(paired), abs=0.004)
    assert again.p_value() == pytest.approx(_shuffled_p(one, two), abs=0.008)
    assert paired_values(paired).p_value() == drawn.p_value()


def _all_signs_p(differences: np.ndarray) -> float:
    half = [
        np.array(list(product((1, -1), repeat=len(d)))) @ d
        for d in (differences[:10], differences[10:])
    ]
    right = np.sort(half[1])
    total = differences.sum()
    count = (len(right) - np.searchsorted(right, abs(total) - 1e-9 - half[0])).sum()
    return 2 * float(count) / 2 ** len(differences)


def _shuffled_p(one: np.ndarray, two: np.ndarray) -> float:
    rng, pool = np.random.default_rng(9), np.concatenate((one, two))
    observed, count = abs(one.mean() - two.mean()), 0
    for _ in range(40_000):
        rng.shuffle(pool)
        count += abs(pool[: len(one)].mean() - pool[len(one) :].mean()) >= observed
    return count / 40_000


@pytest.mark.parametrize(
    ("successes", "trials", "percents"),
    [(95, 100, (88.8, 97.8)), (100, 100, (96.3, 100.0)), (18, 20, (69.9, 97.2))],
)
def test_the_interval_is_that_of_published_tables(
    successes: int, trials: int, percents: tuple[float, float]
) -> None:
    found = wilson_interval(successes, trials)
    assert [round(100 * bound, 1) for bound in found] == list(percents)


@given(st.integers(1, 500), st.data())
def test_the_interval_holds_the_shares_that_a_score_test_accepts(
    n: int, data: st.DataObject
) -> None:
    """p0 is inside where |p - p0| <= z sqrt(p0 (1 - p0) / n): the definition, tried on a grid."""
    successes = data.draw(st.integers(0, n))
    low, high = wilson_interval(successes, n)
    assert ((low == 0) == (successes == 0), (high == 1) == (successes == n)) == (True, True)
    p = successes / n
    for step in range(1, 200):
        p0 = step / 200
        margin = abs(p - p0) - 1.959963984540054 * (p0 * (1 - p0) / n) ** 0.5
        if abs(margin) > 1e-9:
            assert (low <= p0 <= high) == (margin <= 0)


SMALL_SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=9)


@given(SMALL_SCORES, SMALL_SCORES)
def test_it_is_the_share_of_pairs_won_with_ties_half(scores: list[int], others: list[int]) -> None:
    won = sum((a > b) + (a == b) / 2 for a in scores for b in others)
    assert probability_of_superiority(scores, others) == pytest.approx(
        won / len(scores) / len(others)
    )
