"""Conditions and rewards of a scenario, beside a plain computation after stable-retro's program."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from game_rl.games.conditions import Condition
from game_rl.games.reward_term import RewardTerm, WatchedTerm
from game_rl.interchange.retro_measure import (
    ALWAYS_0,
    Measure,
    reward_terms,
    time_term,
    whole_number,
)
from game_rl.interchange.retro_variables import CannotBeSaidError

OPS = (
    "equal",
    "negative-equal",
    "not-equal",
    "less-than",
    "greater-than",
    "less-or-equal",
    "greater-or-equal",
    "nonzero",
    "zero",
    "negative",
    "positive",
    "sign",
)


def measured(entry: dict[str, Any], now: int, before: int, default: str) -> int:
    """Return the number that stable-retro makes of a variable."""
    value = now - before if entry.get("measurement", default) == "delta" else now
    n = entry.get("reference", 0)
    return int(
        {
            None: lambda: value,
            "equal": lambda: value == n,
            "negative-equal": lambda: value == -n,
            "not-equal": lambda: value != n,
            "less-than": lambda: value < n,
            "greater-than": lambda: value > n,
            "less-or-equal": lambda: value <= n,
            "greater-or-equal": lambda: value >= n,
            "nonzero": lambda: value != 0,
            "zero": lambda: value == 0,
            "negative": lambda: value < 0,
            "positive": lambda: value > 0,
            "sign": lambda: (value > 0) - (value < 0),
        }[entry.get("op")]()
    )


@st.composite
def entries(draw: st.DrawFn, *, is_reward: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, values in (
        ("op", st.sampled_from(OPS)),
        ("measurement", st.sampled_from(["delta", "absolute"])),
        ("reference", st.integers(-3, 3)),
        *((key, st.integers(-3, 3)) for key in ("reward", "penalty") if is_reward),
    ):
        if draw(st.booleans()):
            found[key] = draw(values)
    return found


SMALL = st.integers(-4, 4)


def is_change_by_an_amount(entry: dict[str, Any], default: str) -> bool:
    """Whether it is about a change by more than 1, as a comparison with 2 is."""
    if entry.get("measurement", default) != "delta":
        return False
    by_sign = [measured(entry, sign, 0, default) > 0 for sign in (-1, 0, 1)]
    return any(
        (measured(entry, change, 0, default) > 0) != by_sign[(change > 0) - (change < 0) + 1]
        for change in range(-9, 10)
    )


@given(entries(is_reward=False), SMALL, SMALL)
def test_a_condition_holds_where_what_is_measured_is_above_0(
    entry: dict[str, Any], now: int, before: int
) -> None:
    measure = Measure.of(entry, is_delta=False)
    try:
        text = measure.condition("it")
    except CannotBeSaidError:
        assert is_change_by_an_amount(entry, "absolute")
        return
    condition = Condition.model_validate(yaml.safe_load(text))
    expected = measured(entry, now, before, "absolute") > 0
    assert condition.holds({"it": now}, {"it": before}) == expected


@given(entries(is_reward=True), SMALL, SMALL, st.booleans())
def test_the_terms_of_a_reward_earn_what_stable_retro_pays(
    entry: dict[str, Any], now: int, before: int, is_signed: bool
) -> None:
    if not is_signed:
        now = abs(now)
        before = abs(before)
    measure = Measure.of(entry, is_delta=True)
    try:
        terms = [term for _, term in reward_terms(measure, "it", is_signed=is_signed)]
    except CannotBeSaidError:
        assert is_change_by_an_amount(entry, "delta")
        return
    found = 0.0
    for term in terms:
        if not term["weight"]:
            continue
        keys = dict(term)
        if isinstance(keys.get("when"), str):
            keys["when"] = yaml.safe_load(str(keys["when"]))
        watched = WatchedTerm(RewardTerm.model_validate(keys))
        found += watched.step({"it": now, ALWAYS_0: 0}, {"it": before, ALWAYS_0: 0})
    amount = measured(entry, now, before, "delta")
    factor = entry.get("reward", 0) if amount > 0 else entry.get("penalty", 0)
    assert found == amount * factor


def test_time_is_paid_at_each_timestep() -> None:
    term = RewardTerm.model_validate(time_term(Measure.of({"reward": -0.5}, is_delta=True)))
    assert term.reward(0, 0) == -0.5
    with pytest.raises(CannotBeSaidError, match="an operation on the time"):
        time_term(Measure.of({"reward": 1, "op": "sign"}, is_delta=True))


def test_a_reference_that_no_game_file_can_have_is_told() -> None:
    measure = Measure.of({"op": "equal", "reference": 2**60}, is_delta=False)
    with pytest.raises(CannotBeSaidError, match="too large"):
        measure.condition("it")


@pytest.mark.parametrize(
    ("value", "number"),
    [(2, 2), (2.9, 2), (-2.9, -2), (True, 1), ("2", 0), (None, 0), (float("nan"), 0), ([2], 0)],
)
def test_numbers_are_read_as_in_their_program(value: object, number: int) -> None:
    assert whole_number(value) == number
