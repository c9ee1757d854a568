from hypothesis import given
from hypothesis import strategies as st

from game_rl.games.conditions import Condition

values = st.integers(-3, 3)


@given(values, values)
def test_comparisons_are_pythons(value: int, bound: int) -> None:
    now = {"v": value, "other": 0}
    assert Condition(variable="v", equals=bound).holds(now) == (value == bound)
    assert Condition(variable="v", at_most=bound).holds(now) == (value <= bound)
    assert Condition(variable="v", at_least=bound).holds(now) == (value >= bound)


@given(values, st.lists(values, min_size=1))
def test_in_is_membership(value: int, members: list[int]) -> None:
    condition = Condition.model_validate({"variable": "v", "in": members})
    assert condition.holds({"v": value}) == (value in members)
