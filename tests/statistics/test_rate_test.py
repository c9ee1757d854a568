"""The sequential test of a success rate: its chances, counted trial by trial, and its promises."""

from math import ceil, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.statistics import MOST_BATCHES, RateTest, mean_interval, rate_test

WANTED = (0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 1.0)


def counted(test: RateTest, rate: float) -> tuple[float, float]:
    """The chance to pass and the expected trials, by adding one trial after the other."""
    open_, passed, expected = {0: 1.0}, 0.0, 0.0
    for trials in range(1, MOST_BATCHES * test.batch + 1):
        after: dict[int, float] = {}
        for successes, chance in open_.items():
            after[successes + 1] = after.get(successes + 1, 0.0) + chance * rate
            after[successes] = after.get(successes, 0.0) + chance * (1 - rate)
        open_ = after
        if trials % test.batch:
            continue
        for successes in list(open_):
            decision = test.decide(successes, trials)
            if decision is not None:
                chance = open_.pop(successes)
                passed += chance * decision
                expected += chance * trials
    assert not open_  # the last look decides
    return passed, expected


@pytest.mark.parametrize("wanted", WANTED)
def test_three_points_below_the_wanted_rate_pass_in_less_than_every_twentieth_try(
    wanted: float,
) -> None:
    test = rate_test(wanted, 100)
    passed, _ = counted(test, max(wanted - 0.03, wanted / 2))
    assert passed < 0.05
    assert test.pass_probability(max(wanted - 0.03, wanted / 2)) == pytest.approx(passed)


@pytest.mark.parametrize(
    ("wanted", "points", "passes", "expected_trials"),
    [
        (0.95, -3, 0.026, 172),
        (0.95, -2, 0.089, 212),
        (0.95, 0, 0.563, 272),
        (0.95, 2, 0.981, 187),
        (0.95, 3, 0.999, 137),
        (0.97, -3, 0.022, 158),
        (0.97, 0, 0.610, 254),
        (0.97, 2, 0.999, 131),
        (0.90, 2, 0.936, 274),
        (0.50, 2, 0.602, 368),
    ],
)
def test_the_chance_to_pass(
    wanted: float, points: int, passes: float, expected_trials: float
) -> None:
    found = counted(rate_test(wanted, 100), wanted + points / 100)
    assert found == (pytest.approx(passes, abs=0.0006), pytest.approx(expected_trials, abs=0.6))


def test_the_boundaries_of_the_default() -> None:
    test = rate_test(0.95, 100)
    assert test.passes == (98, 193, 288, 380)
    assert test.fails == (92, 186, 281, 379)


@given(st.integers(1, 100).map(lambda n: n / 100), st.integers(1, 120), st.data())
def test_every_design_decides_and_never_against_what_was_seen(
    wanted: float, batch: int, data: st.DataObject
) -> None:
    test, most = rate_test(wanted, batch), MOST_BATCHES * batch
    rate = data.draw(st.sampled_from([wanted, wanted / 2, 1.0]))
    successes = 0
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for trials in range(batch, most + 1, batch):
        successes += int(rng.binomial(batch, rate))
        decision = test.decide(successes, trials)
        if decision is not None:
            break
    assert decision is not None
    if decision:
        assert successes >= wanted * trials - 1e-6
    if rate == 1.0:
        assert decision
    # with as few trials as that, not even all of them prove the rate
    low = max(wanted - max(0.03, 0.6 / sqrt(most)), wanted / 2)
    assert test.pass_probability(low) < 0.05 or test.passes[-1] == most


@given(st.integers(1, 20).map(lambda n: n / 20), st.integers(1, 40))
def test_an_early_end_changes_no_decision_that_is_sure(wanted: float, batch: int) -> None:
    test, most = rate_test(wanted, batch), MOST_BATCHES * batch
    assert test.passes[-1] >= ceil(wanted * most - 1e-9)
    for look, (least, failing) in enumerate(zip(test.passes, test.fails, strict=True), start=1):
        trials = look * batch
        assert least <= test.passes[-1]  # that many pass in the end whatever follows
        assert failing >= test.passes[-1] - 1 - (most - trials)
        assert -1 <= failing < least <= trials + 1


@pytest.mark.parametrize(("n", "t"), [(5, 2.776), (10, 2.262), (20, 2.093), (100, 1.984)])
def test_the_interval_of_a_mean_is_that_of_printed_tables(n: int, t: float) -> None:
    values = [float(i % 2) for i in range(n)]
    low, high = mean_interval(float(np.mean(values)), float(np.std(values)), n) or (0, 0)
    assert (low + high) / 2 == pytest.approx(np.mean(values))
    assert (high - low) / 2 == pytest.approx(t * np.std(values, ddof=1) / sqrt(n), rel=0.006)
    assert mean_interval(0.5, 0.5, 4) is None
