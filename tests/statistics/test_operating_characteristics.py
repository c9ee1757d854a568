"""What the statistics do on made-up data whose truth is known: errors, power, coverage."""

import pytest

from benchmarks.statistics import Truth, characteristics
from tests.examples import variants

REPEATS = 1_500


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("kind", ["normal", "rates"])
def test_an_arm_against_itself_is_seldom_called_different(kind: str, paired: bool) -> None:
    found = characteristics(Truth(kind=kind, effect=0.0), seeds=8, paired=paired, repeats=REPEATS)
    # 5 % and three standard errors of a share of so many repeats
    assert found.called_different <= 0.05 + 3 * (0.05 * 0.95 / REPEATS) ** 0.5
    assert found.coverage >= 0.95 - 3 * (0.05 * 0.95 / REPEATS) ** 0.5


@pytest.mark.parametrize("paired", variants(True, slow=[False]))
def test_a_large_effect_is_found_and_a_larger_one_more_often(paired: bool) -> None:
    powers = [
        characteristics(
            Truth(kind="normal", effect=effect), seeds=8, paired=paired, repeats=REPEATS
        ).called_different
        for effect in (0.0, 1.0, 2.0)
    ]
    assert powers[0] < powers[1] < powers[2]
    assert powers[2] > 0.85
