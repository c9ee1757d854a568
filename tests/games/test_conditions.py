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


def test_a_condition_reads_as_a_clause() -> None:
    words = {
        "lives is 0": {"variable": "lives", "equals": 0},
        "x is other": {"variable": "x", "equals": "other"},
        "result is 1 or 2": {"variable": "result", "in": [1, 2]},
        "x is at least 3 and y is at most 4": {
            "all": [{"variable": "x", "at_least": 3}, {"variable": "y", "at_most": 4}]
        },
        "x increases or (y changes and z decreases)": {
            "any": [
                {"variable": "x", "increases": True},
                {"all": [{"variable": "y", "changes": True}, {"variable": "z", "decreases": True}]},
            ]
        },
        "it is not the case that x is 1": {"not": {"variable": "x", "equals": 1}},
        "x is 1 for 5 timesteps in a row": {"variable": "x", "equals": 1, "for": 5},
        "no reward is earned for 1 timestep": {"no_reward_for": 1},
        "the place does not change for 9 timesteps": {"same_place_for": 9},
    }
    for text, condition in words.items():
        assert Condition.model_validate(condition).in_words == text
