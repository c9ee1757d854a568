"""When an episode ends: its endings, its success and its limit, with what they remember of it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import Field, JsonValue

from game_rl.config.schema import GrowingLimit
from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_tracker import (
    EpisodeTracker,
    RunningEpisode,
    damaged_state,
    tracker_state,
)
from game_rl.errors import UsageError
from game_rl.files.saved import Saved
from game_rl.games.conditions import Condition, Ending, judge
from game_rl.games.definition import Game, unknown_name
from game_rl.games.variables import Values, VariableReader, numbers_of

OWN_ENDINGS = "own_endings"
"""Key of an episode's `info`: the names of the endings of the game's own reward class."""

OVER_AT_START = "over_at_start"
"""Key of an episode's last `info`, there only if an ending or success held before the first action:
the name of that ending, or "success". Such an episode says nothing about who played it."""


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


class CustomEndings(NamedTuple):
    """Whether each ending of a game's own reward class holds, by name."""

    endings: dict[str, bool]
    truncations: dict[str, bool]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.endings, *self.truncations)

    def joined(self, ended: EndedBy) -> EndedBy:
        """Return what ends the episode, given what the game file says; terminal ones come first."""
        held = next((name for name, holds in self.endings.items() if holds), None)
        if held is not None and (ended.ending is None or ended.truncates):
            return EndedBy(held)
        held = next((name for name, holds in self.truncations.items() if holds), None)
        return EndedBy(held, truncates=held is not None) if ended.ending is None else ended


class EpisodeConditions(EpisodeTracker):
    """The endings and the success of one running episode.

    Args:
        place: the variables that say where the player is.
        own: returns the endings of the game's own reward class after a timestep; None if it has
            none.

    Attributes:
        has_endings: whether the game file or its own reward class has an ending.
    """

    def __init__(
        self,
        endings: Mapping[str, Ending],
        success: Condition | None,
        place: tuple[str, ...],
        own: Callable[[Values], CustomEndings] | None = None,
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
        self._own = own
        self._own_names: tuple[str, ...] = ()
        self.has_endings = bool(endings) or own is not None
        self._held_at_start = ""
        self._state_of({})

    def _state_of(self, values: Values) -> None:
        self._before: Values = {name: values[name] for name in self._kept if name in values}
        self._in_a_row: dict[str, int] = {}
        self._without_reward = 0
        self._in_place = 0
        self._is_success = False

    def reset(self, episode: RunningEpisode) -> None:
        self._state_of(episode.values)
        self._held_at_start = self.held_at_start(episode.values)

    def held_at_start(self, values: Values) -> str:
        """Return the name of the ending that holds before the first action, or "success", or "".

        Args:
            values: all variables of the game at the beginning.
        """
        held = (name for name, ending, _ in self._endings if ending.holds(values))
        won = self._success is not None and self._success.holds(values)
        return next(held, "success" if won else "")

    def step(self, episode: RunningEpisode) -> None:
        """Let the first ending that holds end the episode; what terminates it comes first."""
        values = episode.values
        if self._has_memory:
            ended = self._ended_with_memory(values, episode.reward)
        else:
            ended = _NONE
            for test, (name, _, truncates) in zip(self._tests, self._endings, strict=True):
                if test(values, values):
                    ended = EndedBy(name, truncates)
                    break
        if self._own is not None:
            found = self._own(values)
            self._own_names = found.names
            ended = found.joined(ended)
        if ended.ending is not None:
            episode.info["ending"] = ended.ending
            episode.terminated = not ended.truncates
            episode.truncated = ended.truncates

    def _ended_with_memory(self, values: Values, reward: float) -> EndedBy:
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

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        return {} if self._success is None else {"is_success": False}

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        is_success = self.is_success(episode.values)
        if is_success is not None:
            found["is_success"] = is_success
        if self._held_at_start:
            found[OVER_AT_START] = self._held_at_start
        if self._own is not None and (episode.terminated or episode.truncated):
            found[OWN_ENDINGS] = self._own_names
        return found

    def save_state(self) -> Mapping[str, JsonValue]:
        state = ConditionState(
            before=numbers_of(self._before),
            in_a_row=self._in_a_row,
            without_reward=self._without_reward,
            in_place=self._in_place,
            is_success=self._is_success,
        )
        saved: dict[str, JsonValue] = {"conditions": state.model_dump(mode="json")}
        if self._held_at_start:
            saved[OVER_AT_START] = self._held_at_start
        return saved

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:  # noqa: ARG002
        state = tracker_state(saved, "conditions", ConditionState)
        self._before = dict(state.before)
        self._in_a_row = dict(state.in_a_row)
        self._without_reward = state.without_reward
        self._in_place = state.in_place
        self._is_success = state.is_success
        held = saved.get(OVER_AT_START, "")
        if not isinstance(held, str):
            raise damaged_state(OVER_AT_START, f"it is {held!r}")
        self._held_at_start = held


class EpisodeLimit(EpisodeTracker):
    """The number of timesteps after which an episode is truncated; it may grow with a variable.

    Args:
        limit: the limit, or how it grows; None for no limit.

    Raises:
        UsageError: the game has no such variable, or its episodes would never end.
    """

    def __init__(self, limit: int | GrowingLimit | None, game: Game, emulator: Emulator) -> None:
        check_episode_limit(limit, game)
        self._limit = limit
        self._emulator = emulator
        names = {limit.per} if isinstance(limit, GrowingLimit) else set()
        self._reader = VariableReader(game.variables, game.definition.variables, names)
        self._first: int | float | None = None

    def reset(self, episode: RunningEpisode) -> None:  # noqa: ARG002
        if isinstance(self._limit, GrowingLimit):
            self._first = self._value(self._limit)

    def step(self, episode: RunningEpisode) -> None:
        limit = self._limit
        timesteps = episode.timesteps
        if not isinstance(limit, GrowingLimit):
            is_reached = limit is not None and timesteps >= limit
        else:
            assert self._first is not None
            is_reached = timesteps >= limit.start and (
                timesteps >= limit.after(self._value(limit) - self._first)
            )
        if is_reached and not episode.terminated:
            episode.truncated = True

    def _value(self, limit: GrowingLimit) -> int | float:
        value = self._reader.read(self._emulator)[limit.per]
        assert not isinstance(value, tuple)
        return value

    def save_state(self) -> Mapping[str, JsonValue]:
        # of the variable that the limit grows with, at the beginning of the episode
        return {"limit_from": self._first}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        first = saved.get("limit_from")
        if first is None:
            self.reset(episode)
        elif not isinstance(first, int | float):
            raise damaged_state("limit_from", f"it is {first!r}")
        elif isinstance(self._limit, GrowingLimit):
            self._first = first


def check_episode_limit(limit: int | GrowingLimit | None, game: Game) -> None:
    """Check the limit against the game without an emulator.

    Raises:
        UsageError: the game has no such variable, or its episodes would never end.
    """
    if limit is None and not game.definition.endings:
        raise UsageError(
            f"an episode of {game.name} would never end: game.yaml has no `endings`; add some "
            "or set env.max_episode_timesteps"
        )
    if isinstance(limit, GrowingLimit) and limit.per not in game.number_names:
        fault = f"{limit.per} is an array, and a number is needed; count its bits, for instance"
        if limit.per not in game.definition.variables:
            fault = unknown_name(limit.per, "variable", game.number_names, of=game.name)
        raise UsageError(f"env.max_episode_timesteps.per: {fault}")
