import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.statistics import holm


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
