from collections.abc import Iterable

import pytest
from pydantic import ValidationError

from game_rl.config.strict_model import MOST_PROBLEMS, Problem, StrictModel


class Range(StrictModel):
    low: float
    high: float

    def problems(self) -> Iterable[Problem]:
        if self.low > self.high:
            yield Problem(("low",), f"{self.low:g} is above high = {self.high:g}", (("high",),))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_number_is_infinite_or_nan(bad: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Range(low=0, high=bad)


def test_a_section_with_a_problem_cannot_be_made() -> None:
    assert Range(low=1, high=1).low == 1
    with pytest.raises(ValidationError, match="low: 2 is above high = 1"):
        Range(low=2, high=1)


class Complaining(StrictModel):
    def problems(self) -> Iterable[Problem]:
        number = 0
        while True:
            number += 1
            yield Problem((f"key{number}",), "is wrong")


def test_a_check_is_asked_for_no_more_than_anyone_reads() -> None:
    with pytest.raises(ValidationError, match=f"key{MOST_PROBLEMS}: is wrong"):
        Complaining()
