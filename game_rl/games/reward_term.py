"""An entry of `rewards` in game.yaml, and what it remembers of a running episode."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.files.saved import Blob, Saved
from game_rl.games.conditions import Condition, Number, judge
from game_rl.games.place import VisitedPlaces
from game_rl.games.variables import Values

_OF_PLACES = ("first_visit", "visits")
_OF_BESTS = ("new_maximum", "new_minimum")
_OF_AMOUNTS = ("increase", "decrease", "difference", "value", *_OF_BESTS)
_OF_CHANGES = ("increase", "decrease", "difference", "change")
_DUMPED_IF_NONE = ("variable", "on", "value", "weight", "once")


class Knee(StrictModel):
    """`{at: 22, slope: 0.25}`: amounts above 22 count a quarter."""

    at: Number
    slope: Annotated[float, Field(gt=0)]


class RewardTerm(StrictModel):
    """One entry of `rewards` in game.yaml."""

    variable: str | None = None
    variables: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Variables that say where the player is, for `first_visit` and `visits`."""
    on: Literal[
        "increase",
        "decrease",
        "difference",
        "change",
        "equals",
        "value",
        "new_maximum",
        "new_minimum",
        "first_visit",
        "visits",
        "potential",
    ] = "potential"
    """Which change or value of the variable is rewarded; leave it out with `potential`."""
    potential: Path | None = None
    """Folder of an exploration, relative to game.yaml, whose graph says how many timesteps there
    are to go: to success or, if it never reached success, to the highest reward. A timestep earns
    the weight for each timestep by which the agent comes closer to that end, and loses it for each
    by which it moves away."""
    value: Number | None = None
    """Value of `on: equals`."""
    at_least: Annotated[int, Field(ge=2, le=10**9)] | None = None
    """Number of visits of a place from which on `on: visits` earns the weight."""
    weight: float = 1.0
    once: bool = False
    """Whether it is earned only once in an episode."""
    per_run: bool | None = None
    """For `on: first_visit`: a place that n episodes of the run have visited, including this one,
    earns the weight divided by the square root of n. Without it, each episode earns the whole
    weight."""
    cap: Number | None = None
    """Higher values of the variable count as this one; for `first_visit`, the largest number of
    places."""
    knee: Knee | None = None
    """Value of the variable, or number of places, above which further amounts count less (or
    more)."""
    power: Annotated[float, Field(gt=0, le=10)] | None = None
    """Exponent of a timestep's amount; the sign is kept."""
    when: Condition | None = None
    """Condition that must hold after a timestep for the term to count it."""
    unless: Condition | None = None
    """Condition that must not hold after a timestep for the term to count it."""

    def problems(self) -> Iterable[Problem]:
        if self.on == "potential" or self.potential is not None:
            yield from self._potential_problems()
            return
        yield from self._variable_problems()
        if (self.on == "equals") != (self.value is not None):
            yield Problem(("value",), "`value` goes with `on: equals`, and only with it")
        if (self.on == "visits") != (self.at_least is not None):
            yield Problem(("at_least",), "`at_least` goes with `on: visits`, and only with it")
        if self.weight == 0:
            yield Problem(("weight",), "a weight of 0 rewards nothing; remove the term")
        yield from self._shape_problems()

    def _potential_problems(self) -> Iterable[Problem]:
        """Check that a potential has nothing but its weight, as else a loop might pay."""
        if self.potential is None:
            yield Problem((), "needs `on`, which says what is rewarded, such as `on: increase`")
            return
        if self.on != "potential":
            yield Problem(("on",), "does not go with `potential`; remove one of them")
        given = self.model_fields_set - {"on", "potential", "weight"}
        for name in sorted(given):
            if getattr(self, name) != type(self).model_fields[name].default:
                yield Problem((name,), "does not go with `potential`; remove it")
        if "weight" not in self.model_fields_set:
            yield Problem(
                (),
                "a potential needs a `weight`, the reward for a timestep of progress, such as 0.02",
            )
        elif self.weight <= 0:
            yield Problem(
                ("weight",), f"{self.weight:g} would reward moving away; write more than 0"
            )

    def _variable_problems(self) -> Iterable[Problem]:
        key, other = ("variables", "variable") if self.is_of_places else ("variable", "variables")
        if getattr(self, other) is not None:
            example = "`variables: [map, x, y]`" if self.is_of_places else "one `variable`"
            yield Problem((other,), f"`on: {self.on}` goes with {example}; write that instead")
        elif getattr(self, key) is None:
            example = "variables: [map, x, y]" if self.is_of_places else "variable: score"
            yield Problem((), f"`on: {self.on}` needs `{key}`; add it, as in `{example}`")
        names = self.variables or ()
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem(("variables", str(index)), f"{name} is named twice; remove one")

    def _shape_problems(self) -> Iterable[Problem]:
        if self.per_run and self.on != "first_visit":
            yield Problem(("per_run",), "`per_run` goes with `on: first_visit`; remove it")
        for name in ("cap", "knee"):
            if self.per_run and getattr(self, name) is not None:
                yield Problem(
                    (name,),
                    "counts places of an episode, and `per_run` those of the run; remove "
                    "one of them",
                )
        for name in ("cap", "knee", "power"):
            able = _OF_AMOUNTS if name == "power" else (*_OF_AMOUNTS, "first_visit")
            if getattr(self, name) is not None and self.on not in able:
                yield Problem(
                    (name,),
                    f"`on: {self.on}` earns the weight and has no amount; remove `{name}`, which "
                    f"goes with {', '.join(able)}",
                )
        if self.cap is not None and self.knee is not None and self.knee.at >= self.cap:
            yield Problem(
                ("knee", "at"),
                f"nothing above the cap of {self.cap:,} counts; choose a lower knee, or remove it",
                reads=(("cap",),),
            )

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump a term as versions did that knew nothing else."""
        found: dict[str, Any] = dump(self)
        return {k: v for k, v in found.items() if k in _DUMPED_IF_NONE or v is not None}

    @property
    def is_of_places(self) -> bool:
        return self.on in _OF_PLACES

    @property
    def is_potential(self) -> bool:
        return self.on == "potential"

    @property
    def is_of_bests(self) -> bool:
        return self.on in _OF_BESTS

    @property
    def needs_change(self) -> bool:
        """Whether the term earns nothing while its variable does not change."""
        return self.on in _OF_CHANGES

    @property
    def is_watched(self) -> bool:
        """Whether its reward depends on more than its variable before and after a timestep."""
        has_conditions = self.when is not None or self.unless is not None
        return self.is_of_places or self.is_of_bests or has_conditions

    def conditions(self) -> Iterator[tuple[Key, Condition]]:
        """Yield its conditions, each with its key."""
        for key, condition in (("when", self.when), ("unless", self.unless)):
            if condition is not None:
                yield (key,), condition

    def references(self) -> Iterator[tuple[Key, str]]:
        """Yield the variables that it names, each with its key."""
        if self.variable is not None:
            yield ("variable",), self.variable
        for index, name in enumerate(self.variables or ()):
            yield ("variables", str(index)), name
        for at, condition in self.conditions():
            yield from (((*at, *key), name) for key, name in condition.references())

    def reward(self, before: float, now: float) -> float:
        """Return the reward of a timestep in which the variable went from `before` to `now`.

        For a new maximum or minimum, `before` is the best one so far; for a first visit, both are
        numbers of places; for a potential, both are timesteps to go.
        """
        if self.cap is not None or self.knee is not None:
            before = self._bent(before)
            now = self._bent(now)
        amount = self._amount(before, now)
        if self.power is not None:
            amount = math.copysign(abs(amount) ** self.power, amount)
        return self.weight * amount

    def _amount(self, before: float, now: float) -> float:
        match self.on:
            case "increase" | "new_maximum" | "first_visit":
                return max(0, now - before)
            case "decrease" | "new_minimum":
                return max(0, before - now)
            case "difference":
                return now - before
            case "change":
                return now != before
            case "equals":
                return now == self.value
            case "visits":
                return 1
            case "value":
                return now
            case "potential":
                return before - now

    def _bent(self, value: float) -> float:
        if self.cap is not None:
            value = min(value, self.cap)
        if self.knee is not None and value > self.knee.at:
            value = self.knee.at + self.knee.slope * (value - self.knee.at)
        return value


_NAMES = ("variable", "variables")


class WatchedTermState(Saved):
    """What a reward term remembers of the episode so far."""

    of: tuple[str, ...] = ()
    """The term's `on` and variables; a term with others remembers nothing of it."""
    best: int | float | None = None
    """Highest or lowest value so far, for a new maximum or minimum."""
    places: Blob | None = None
    """The visited places, as `VisitedPlaces` writes them."""
    new: Annotated[Blob | None, Field(exclude_if=lambda places: places is None)] = None
    """Visits of this run that its other envs do not know yet, likewise; see `per_run`."""
    in_a_row: dict[str, int] = Field(default={})
    """Timesteps in a row for which a condition with `for` has held, by its key."""


class WatchedTerm:
    """A reward term in one running episode, with what it remembers of it.

    A timestep after which `when` does not hold, or `unless` does, is not seen: it earns nothing, is
    no visit, and gives no best. The beginning of the episode is seen as a timestep is, and what is
    seen first gives the first best, or the first place, and earns nothing.
    """

    def __init__(self, term: RewardTerm) -> None:
        self._term = term
        self._of = (term.on, *(name for key, name in term.references() if key[0] in _NAMES))
        self._conditions = tuple(
            (key, condition, key == "when") for (key,), condition in term.conditions()
        )
        self._forget()

    def _forget(self) -> None:
        self._best: int | float | None = None
        self._places = VisitedPlaces(self._term.at_least or 1)
        self._in_a_row: dict[str, int] = {}

    def reset(self, values: Values) -> None:
        self._forget()
        if all(found.holds(values) == wanted for _, found, wanted in self._conditions):
            self._look(values)

    def step(self, values: Values, before: Values) -> float:
        """Return the reward of a timestep.

        Args:
            values: the variables after the timestep.
            before: those after the timestep before.
        """
        # both are judged at every timestep, because they count them
        judged = [
            judge(condition, key, values, before, self._in_a_row) == wanted
            for key, condition, wanted in self._conditions
        ]
        if not all(judged):
            return 0.0
        term = self._term
        variable = self._term.variable
        if variable is None or term.is_of_bests:
            return self._look(values)
        return term.reward(before[variable], values[variable])

    def _look(self, values: Values) -> float:
        """Remember what the term has to remember of these values, and return what that earns."""
        term = self._term
        if term.variables is not None:
            visits = self._places.visit(tuple(values[name] for name in term.variables))
            if term.at_least is not None:
                return term.weight if visits >= term.at_least else 0.0
            n_new = len(self._places) - 1  # without the first one
            return term.reward(n_new - 1, n_new) if visits == 1 and n_new else 0.0
        if term.variable is None or not term.is_of_bests:
            return 0.0
        value = values[term.variable]
        best = value if self._best is None else self._best
        self._best = max(best, value) if term.on == "new_maximum" else min(best, value)
        return term.reward(best, value)

    def save_state(self) -> WatchedTermState:
        return WatchedTermState(
            of=self._of,
            best=self._best,
            places=self._places.to_bytes() if len(self._places) else None,
            in_a_row=dict(self._in_a_row),
        )

    def load_state(self, state: WatchedTermState) -> None:
        self._forget()
        if state.of != self._of:  # the game file was changed
            return
        self._best = state.best
        if state.places is not None:
            self._places.load_bytes(state.places)
        self._in_a_row = dict(state.in_a_row)
