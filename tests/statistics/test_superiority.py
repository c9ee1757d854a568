import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.statistics import probability_of_superiority

SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=9)


@given(SCORES, SCORES)
def test_it_is_the_share_of_pairs_won_with_ties_half(scores: list[int], others: list[int]) -> None:
    won = sum((a > b) + (a == b) / 2 for a in scores for b in others)
    assert probability_of_superiority(scores, others) == pytest.approx(
        won / len(scores) / len(others)
    )
