import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.statistics import wilson_interval


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
    p = successes / n
    for step in range(1, 200):
        p0 = step / 200
        margin = abs(p - p0) - 1.959963984540054 * (p0 * (1 - p0) / n) ** 0.5
        if abs(margin) > 1e-9:
            assert (low <= p0 <= high) == (margin <= 0)
