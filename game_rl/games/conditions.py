"""Conditions on variables, rewards and places: endings and success."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, WithJsonSchema, model_serializer

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.system.units import counted

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
"""A number that a variable is compared with; a whole one stays whole."""

_Bound = Number | str
_Timesteps = Annotated[int, Field(ge=1, le=10**9)]

_COMPARISONS = {
    "equals": "equals",
    "one_of": "in",
    "at_most": "at_most",
    "at_least": "at_least",
    "increases": "increases",
    "decreases": "decreases",
    "changes": "changes",
}
"""Fields that compare a variable, with their keys in game.yaml."""
_KINDS = {
    "variable": "variable",
    "every": "all",
    "some": "any",
    "negated": "not",
    "no_reward_for": "no_reward_for",
    "same_place_for": "same_place_for",
}
_DUMPED_IF_NONE = ("variable", "equals", "one_of", "in", "at_most", "at_least")


class Condition(StrictModel):
    """`{variable: lives, equals: 0}`, `all`, `any` or `not` of others, or a long wait."""

    variable: str | None = None
    """Variable to compare by one of the next seven keys."""
    equals: _Bound | None = None
    """A number, or the name of another variable; `at_most` and `at_least` take the same."""
    one_of: Annotated[tuple[Number, ...], Field(min_length=1)] | None = Field(
        default=None, alias="in"
    )
    at_most: _Bound | None = None
    at_least: _Bound | None = None
    increases: Literal[True] | None = None
    """Whether it is higher than in the timestep before."""
    decreases: Literal[True] | None = None
    changes: Literal[True] | None = None
    every: Annotated[tuple["Condition", ...], Field(min_length=1)] | None = Field(
        default=None, alias="all"
    )
    """Conditions that must all hold."""
    some: Annotated[tuple["Condition", ...], Field(min_length=1)] | None = Field(
        default=None, alias="any"
    )
    """Conditions of which one is enough."""
    negated: "Condition | None" = Field(default=None, alias="not")
    """Condition that must not hold."""
    for_timesteps: _Timesteps | None = Field(default=None, alias="for")
    """Timesteps in a row for which the condition must have held."""
    no_reward_for: _Timesteps | None = None
    """Timesteps in a row that earned no positive reward. Only in endings; it truncates."""
    same_place_for: _Timesteps | None = None
    """Timesteps in a row in which `place` did not change. Only in endings; it truncates."""

    def problems(self) -> Iterable[Problem]:
        kinds = [key for field, key in _KINDS.items() if getattr(self, field) is not None]
        given = [key for field, key in _COMPARISONS.items() if getattr(self, field) is not None]
        every = ", ".join(f"`{key}`" for key in _COMPARISONS.values())
        if len(kinds) > 1:
            yield Problem((kinds[1],), f"does not go with `{kinds[0]}`; join them with `all`")
        elif not kinds:
            others = ", ".join(f"`{key}`" for key in _KINDS.values() if key != "variable")
            yield Problem((), f"name a `variable` to compare, or give one of {others}")
        elif self.variable is not None and len(given) != 1:
            yield Problem((), f"give exactly one of {every}")
        elif self.variable is None and given:
            yield Problem((given[0],), f"compares a `variable`, and does not go with `{kinds[0]}`")
        if self.is_wait and self.for_timesteps is not None:
            yield Problem(("for",), "is a number of timesteps of its own there; remove it")

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump a comparison as versions did that knew nothing else."""
        found: dict[str, Any] = dump(self)
        return {k: v for k, v in found.items() if k in _DUMPED_IF_NONE or v not in (None, False)}

    @property
    def is_wait(self) -> bool:
        """Whether it holds when nothing has happened for long."""
        return self.no_reward_for is not None or self.same_place_for is not None

    @property
    def in_words(self) -> str:
        """The condition as a clause, such as "lives is 0"."""
        if self.no_reward_for is not None:
            return f"no reward is earned for {counted(self.no_reward_for, 'timestep')}"
        if self.same_place_for is not None:
            return f"the place does not change for {counted(self.same_place_for, 'timestep')}"
        if self.variable is not None:
            words = f"{self.variable} {self._comparison_in_words}"
        elif self.negated is not None:
            words = f"it is not the case that {self.negated.in_words}"
        else:
            children = [
                f"({child.in_words})" if child.every or child.some else child.in_words
                for _, child in self.children
            ]
            words = (" and " if self.every is not None else " or ").join(children)
        if self.for_timesteps is None:
            return words
        return f"{words} for {counted(self.for_timesteps, 'timestep')} in a row"

    @property
    def _comparison_in_words(self) -> str:
        if self.equals is not None:
            return f"is {self.equals}"
        if self.one_of is not None:
            return f"is {' or '.join(map(str, self.one_of))}"
        if self.at_most is not None:
            return f"is at most {self.at_most}"
        if self.at_least is not None:
            return f"is at least {self.at_least}"
        if self.increases:
            return "increases"
        return "decreases" if self.decreases else "changes"

    @property
    def has_memory(self) -> bool:
        """Whether it depends on earlier timesteps."""
        return any(
            found.is_wait or found.is_change or found.for_timesteps is not None
            for _, found in self.parts()
        )

    @property
    def is_change(self) -> bool:
        return bool(self.increases or self.decreases or self.changes)

    @property
    def children(self) -> Iterator[tuple[Key, "Condition"]]:
        for key, group in (("all", self.every), ("any", self.some)):
            yield from (((key, str(index)), child) for index, child in enumerate(group or ()))
        if self.negated is not None:
            yield ("not",), self.negated

    def parts(self) -> Iterator[tuple[Key, "Condition"]]:
        """Yield this condition and all in it, each with its key."""
        yield (), self
        for key, child in self.children:
            for below, part in child.parts():
                yield (*key, *below), part

    def references(self) -> Iterator[tuple[Key, str]]:
        """Yield the variables that it names, each with its key."""
        for key, part in self.parts():
            bounds = {"equals": part.equals, "at_most": part.at_most, "at_least": part.at_least}
            named = {"variable": part.variable, **bounds}
            for name, value in named.items():
                if isinstance(value, str):
                    yield (*key, name), value

    def holds(self, values: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> bool:
        """Whether it holds if nothing is known but the values of two timesteps.

        Args:
            values: the values now.
            before: those of one timestep before; None if nothing has changed.
        """
        if self.for_timesteps is not None or self.is_wait:
            return False
        if self.variable is not None:
            return self.compares(values, values if before is None else before)
        return self.joined([child.holds(values, before) for _, child in self.children])

    def joined(self, found: list[bool]) -> bool:
        """Return what follows from whether its children hold."""
        if self.every is not None:
            return all(found)
        return any(found) if self.some is not None else not found[0]

    def compares(self, values: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Whether the comparison of its variable holds."""
        assert self.variable is not None
        value: float = values[self.variable]
        if self.equals is not None:
            return value == _number(self.equals, values)
        if self.one_of is not None:
            return value in self.one_of
        if self.at_most is not None:
            return value <= _number(self.at_most, values)
        if self.at_least is not None:
            return value >= _number(self.at_least, values)
        earlier: float = before[self.variable]
        if self.increases:
            return value > earlier
        return value < earlier if self.decreases else value != earlier


def _number(bound: float | str, values: Mapping[str, Any]) -> float:
    number: float = values[bound] if isinstance(bound, str) else bound
    return number


class Ending(Condition):
    """A condition that ends the episode."""

    truncates: bool = False
    """Whether the episode is truncated, as by a time limit, and not over. Long waits always do."""

    @property
    def is_truncation(self) -> bool:
        return self.truncates or any(part.is_wait for _, part in self.parts())

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        for key, part in self.parts():
            if part.is_wait and {"any", "not"} & set(key):
                name = "no_reward_for" if part.no_reward_for is not None else "same_place_for"
                yield Problem(
                    (*key, name),
                    "truncates the episode, so it cannot be within `any` or `not`; make it an "
                    "ending of its own",
                )


def judge(
    condition: Condition,
    key: str,
    values: Mapping[str, Any],
    before: Mapping[str, Any],
    in_a_row: dict[str, int],
    has_waited: Callable[[Condition], bool] | None = None,
) -> bool:
    """Return whether a condition holds after a timestep; called once for each timestep.

    Args:
        key: its key, below which `in_a_row` has those of the conditions in it.
        before: the values after the timestep before.
        in_a_row: the timesteps for which each condition with `for` has held; it is updated.
        has_waited: judges a long wait; None where there can be none.
    """
    if condition.is_wait:
        return has_waited is not None and has_waited(condition)
    if condition.variable is not None:
        holds = condition.compares(values, before)
    else:
        holds = condition.joined(
            [
                judge(child, ".".join((key, *below)), values, before, in_a_row, has_waited)
                for below, child in condition.children
            ]
        )
    if condition.for_timesteps is None:
        return holds
    in_a_row[key] = in_a_row.get(key, 0) + 1 if holds else 0
    return in_a_row[key] >= condition.for_timesteps
