"""The endings and the success of a running episode, with what they remember of it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import Field

from game_rl.files.saved import Saved
from game_rl.games.conditions import Condition, Ending
from game_rl.games.variables import Values, numbers_of


class ConditionState(Saved):
    """What conditions remember of the episode so far."""

    before: dict[str, int | float] = Field(default={})
    """The variables after the last timestep of which a change counts."""
    in_a_row: dict[str, int] = Field(default={})
    """Timesteps in a row for which a condition with `for` has held, by its key."""
    without_reward: int = 0
    """Timesteps in a row without a positive reward."""
    in_place: int = 0
    """Timesteps in a row in which the place did not change."""
    is_success: bool = False
    """Whether a success that depends on earlier timesteps held after the last one."""


class EndedBy(NamedTuple):
    """The ending that holds after a timestep.

    Attributes:
        ending: its name; None if none does.
        truncates: whether it truncates the episode.
    """

    ending: str | None
    truncates: bool = False


_NONE = EndedBy(None)


def judge(
    condition: Condition,
    key: str,
    values: Values,
    before: Values,
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


class EpisodeConditions:
    """The endings and the success of one running episode.

    Args:
        place: the variables that say where the player is.

    Attributes:
        variables: names of the variables that a timestep needs.
    """

    def __init__(
        self, endings: Mapping[str, Ending], success: Condition | None, place: tuple[str, ...]
    ) -> None:
        ordered = sorted(endings.items(), key=lambda item: item[1].is_truncation)
        self._endings = tuple((name, ending, ending.is_truncation) for name, ending in ordered)
        # the test of an ending without memory
        self._tests = tuple(e.holds if e.variable is None else e.compares for _, e in ordered)
        self._success = success
        self._remembered = success if success is not None and success.has_memory else None
        watched = [*endings.values(), *filter(None, [self._remembered])]
        parts = [part for condition in watched for _, part in condition.parts()]
        self._place = place if any(p.same_place_for is not None for p in parts) else ()
        changing = {str(part.variable) for part in parts if part.is_change}
        self._kept = frozenset({*changing, *self._place})
        named = {name for condition in watched for _, name in condition.references()}
        self.variables = frozenset({*named, *self._place})
        self._has_memory = any(condition.has_memory for condition in watched)
        self._state_of({})

    def _state_of(self, values: Values) -> None:
        self._before: Values = {name: values[name] for name in self._kept if name in values}
        self._in_a_row: dict[str, int] = {}
        self._without_reward = self._in_place = 0
        self._is_success = False

    def reset(self, values: Values) -> None:
        self._state_of(values)

    def held_at_start(self, values: Values) -> str:
        """Return the name of the ending that holds before the first action, or "success", or "".

        Args:
            values: all variables of the game at the beginning.
        """
        held = (name for name, ending, _ in self._endings if ending.holds(values))
        won = self._success is not None and self._success.holds(values)
        return next(held, "success" if won else "")

    def step(self, values: Values, reward: float) -> EndedBy:
        """Return what ends the episode after a timestep; what terminates it comes first."""
        if self._has_memory:
            return self._step_with_memory(values, reward)
        for test, (name, _, truncates) in zip(self._tests, self._endings, strict=True):
            if test(values, values):
                return EndedBy(name, truncates)
        return _NONE

    def _step_with_memory(self, values: Values, reward: float) -> EndedBy:
        # a state of a run whose game file had no such condition knows nothing of before
        self._before = {name: values[name] for name in self._kept} | dict(self._before)
        self._without_reward = 0 if reward > 0 else self._without_reward + 1
        stays = all(values[name] == self._before[name] for name in self._place)
        self._in_place = self._in_place + 1 if stays else 0
        # every one is judged at every timestep, because it counts them
        found = [self._holds(ending, name, values) for name, ending, _ in self._endings]
        if self._remembered is not None:
            self._is_success = self._holds(self._remembered, "", values)
        self._before = {name: values[name] for name in self._kept}
        held = (item for item, holds in zip(self._endings, found, strict=True) if holds)
        return next((EndedBy(name, truncates) for name, _, truncates in held), _NONE)

    def _holds(self, condition: Condition, key: str, values: Values) -> bool:
        return judge(condition, key, values, self._before, self._in_a_row, self._has_waited)

    def _has_waited(self, condition: Condition) -> bool:
        if condition.no_reward_for is not None:
            return self._without_reward >= condition.no_reward_for
        assert condition.same_place_for is not None
        return self._in_place >= condition.same_place_for

    def is_success(self, values: Values) -> bool | None:
        """Whether the episode is a success if it ends now; None if the game defines none.

        Args:
            values: all variables of the game.
        """
        if self._success is None:
            return None
        return self._success.holds(values) if self._remembered is None else self._is_success

    def save_state(self) -> ConditionState:
        return ConditionState(
            before=numbers_of(self._before),
            in_a_row=dict(self._in_a_row),
            without_reward=self._without_reward,
            in_place=self._in_place,
            is_success=self._is_success,
        )

    def load_state(self, state: ConditionState) -> None:
        self._before = dict(state.before)
        self._in_a_row = dict(state.in_a_row)
        self._without_reward = state.without_reward
        self._in_place = state.in_place
        self._is_success = state.is_success
