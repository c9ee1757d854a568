"""Reward terms: their entries in game.yaml, and their sums over an episode."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from pydantic import JsonValue

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.errors import GameFileError
from game_rl.games.conditions import Number
from game_rl.games.custom_reward import CUSTOM_TERM, GameReward
from game_rl.games.variables import Values, numbers_of
from game_rl.saved import Saved

_ABSURD_REWARD = 10_000.0  # in one timestep; networks learn well from sums of about -10 to 10


class RewardTerm(StrictModel):
    """One entry of `rewards` in game.yaml."""

    variable: str
    on: Literal["increase", "decrease", "change", "equals", "value"]
    value: Number | None = None
    weight: float = 1.0
    once: bool = False

    def problems(self) -> Iterable[Problem]:
        if (self.on == "equals") != (self.value is not None):
            yield Problem(("value",), "`value` goes with `on: equals`, and only with it")
        if self.weight == 0:
            yield Problem(("weight",), "a weight of 0 rewards nothing; remove the term")

    @property
    def needs_change(self) -> bool:
        """Whether the term earns nothing while its variable does not change."""
        return self.on in ("increase", "decrease", "change")

    def reward(self, before: float, now: float) -> float:
        """Return the reward of a timestep in which the variable went from `before` to `now`."""
        match self.on:
            case "increase":
                return self.weight * max(0, now - before)
            case "decrease":
                return self.weight * max(0, before - now)
            case "change":
                return self.weight * (now != before)
            case "equals":
                return self.weight * (now == self.value)
            case "value":
                return self.weight * now


class RewardState(Saved):
    """The state that the rewards of later timesteps depend on."""

    before: dict[str, int | float]
    """The variables that are numbers, after the last timestep."""
    sums: dict[str, float]
    spent: tuple[str, ...]
    """Terms with `once` that have been earned."""
    custom: JsonValue = None
    """State of the game's own reward class."""


class TermReward(NamedTuple):
    """What a term has earned in one timestep."""

    term: str
    reward: float

    @property
    def warning(self) -> str | None:
        """What to do about the reward if it is absurdly large, or else None."""
        if abs(self.reward) <= _ABSURD_REWARD:
            return None
        return (
            f"reward term {self.term} has earned {self.reward:g} in one timestep; agents learn "
            "well while the sum of an episode is between about -10 and 10, so correct the term or "
            "lower its weight"
        )


class EpisodeReward:
    """The reward terms of one running episode.

    Attributes:
        largest: the largest reward by amount in any timestep of any episode.
    """

    def __init__(self, terms: Mapping[str, RewardTerm], custom: GameReward | None) -> None:
        # attributes are looked up once instead of in every timestep
        self._terms = tuple((n, t, t.variable, t.needs_change) for n, t in terms.items())
        self._custom = custom
        self._before: Values = {}
        self._sums: dict[str, float] = {}
        self._spent: set[str] = set()
        self.largest = TermReward("", 0.0)

    @property
    def sums(self) -> dict[str, float]:
        """A copy of the sums that the terms have earned so far in this episode."""
        return dict(self._sums)

    def reset(self, values: Values) -> None:
        self._before = values
        self._sums = {name: 0.0 for name, *_ in self._terms}
        self._spent = set()
        if self._custom is not None:
            self._custom.reset(values)

    def step(self, values: Values) -> float:
        """Return the reward of a timestep after which the variables are `values`.

        Raises:
            GameFileError: the game's own reward class failed, or its reward is not finite.
        """
        total = 0.0
        for name, term, variable, needs_change in self._terms:
            before, now = self._before[variable], values[variable]
            if (needs_change and before == now) or name in self._spent:
                continue
            earned = term.reward(before, now)
            if earned:
                total += self._earn(name, earned)
                if term.once:
                    self._spent.add(name)
        self._before = values
        if self._custom is not None:
            total += self._step_custom(self._custom, values)
        return total

    def save_state(self) -> RewardState:
        """Return the state.

        Raises:
            GameFileError: the game's own reward class cannot be saved.
        """
        return RewardState(
            before=numbers_of(self._before),
            sums=self.sums,
            spent=tuple(sorted(self._spent)),
            custom=None if self._custom is None else self._custom.save_state(),
        )

    def load_state(self, state: RewardState) -> None:
        self._before = dict(state.before)
        self._sums = dict(state.sums)
        self._spent = set(state.spent)
        if self._custom is not None:
            self._custom.load_state(state.custom)

    def renew_custom(self) -> None:
        """Go on with a copy of the game's own reward class that was saved and loaded, if any.

        Raises:
            GameFileError: it cannot be saved, or a new object cannot load what was saved.
        """
        if self._custom is not None:
            self._custom = self._custom.renewed()

    def _step_custom(self, custom: GameReward, values: Values) -> float:
        earned = custom.step(values)
        if not isinstance(earned, Mapping):
            earned = {CUSTOM_TERM: earned}
        return sum(self._earn(name, reward) for name, reward in earned.items())

    def _earn(self, name: str, reward: float) -> float:
        if not math.isfinite(reward):
            raise GameFileError(
                f"reward term {name} is {reward}; rewards must be finite, fix the reward class"
            )
        if abs(reward) > abs(self.largest.reward):
            self.largest = TermReward(name, reward)
        self._sums[name] = self._sums.get(name, 0.0) + reward
        return reward
