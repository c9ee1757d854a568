"""Conditions on a variable: endings and success."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, WithJsonSchema

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.games.variables import Values

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
"""A number that a variable is compared with; a whole one stays whole."""


class Condition(StrictModel):
    """`{variable: lives, equals: 0}`, or `in: [..]`, `at_most: n`, `at_least: n`."""

    variable: str
    equals: Number | None = None
    one_of: Annotated[tuple[Number, ...], Field(min_length=1)] | None = Field(
        default=None, alias="in"
    )
    at_most: Number | None = None
    at_least: Number | None = None

    def problems(self) -> Iterable[Problem]:
        given = [self.equals, self.one_of, self.at_most, self.at_least]
        if sum(g is not None for g in given) != 1:
            yield Problem((), "give exactly one of `equals`, `in`, `at_most`, `at_least`")

    def holds(self, values: Values) -> bool:
        value: float = values[self.variable]
        if self.equals is not None:
            return value == self.equals
        if self.one_of is not None:
            return value in self.one_of
        if self.at_most is not None:
            return value <= self.at_most
        assert self.at_least is not None
        return value >= self.at_least
