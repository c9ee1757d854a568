"""What an episode reaches for the first time: reward terms, new maxima of variables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, JsonValue

from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode, tracker_state
from game_rl.files.saved import Saved
from game_rl.games.variables import Value

MILESTONES = "milestones"
"""Key of a timestep's `info`: what the episode has `NewMilestone` in it."""

_GROWTH = 0.05  # of a maximum, so that a score of eight digits has at most 400 of them


class NewMilestone(NamedTuple):
    """Something that an episode has reached.

    Attributes:
        kind: reward_term or variable.
        name: name of the term or variable; `flags[12]` for an element of an array.
        value: value of the variable; None for a term.
    """

    kind: str
    name: str
    value: int | float | None = None


class MilestoneState(Saved):
    """What a running episode has reached, and where it began."""

    first: dict[str, tuple[int | float, ...]] = Field(default={})
    """The variables after the beginning of the episode; a number is an array of one."""
    best: dict[str, int | float] = Field(default={})
    """The maximum that was reached, by the name in `NewMilestone`."""
    earned: tuple[str, ...] = ()
    """Reward terms that were earned."""


class MilestoneWatch(EpisodeTracker):
    """Finds what a running episode reaches for the first time.

    A reward term is reached when it first earns more than 0 in the episode. A variable, or an
    element of an array, is reached at each new maximum above its value at the beginning of the
    episode, so that nothing counts that a start state has already.

    Args:
        names: variables of game.yaml's `milestones`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self.variables = frozenset(names)
        self._first: dict[str, tuple[int | float, ...]] = {}
        self._last: dict[str, Value | None] = dict.fromkeys(names)
        self._best: dict[str, int | float] = {}
        self._earned: set[str] = set()

    def reset(self, episode: RunningEpisode) -> None:
        values = episode.values
        self._first = {name: _as_tuple(values[name]) for name in self._names}
        self._last = {name: values[name] for name in self._names}
        self._best = {}
        self._earned = set()

    def step(self, episode: RunningEpisode) -> None:
        """Add to `info` what a timestep has reached, if anything."""
        found: list[NewMilestone] = []
        for term in episode.gained:
            if term not in self._earned:
                self._earned.add(term)
                found.append(NewMilestone("reward_term", term))
        for name in self._names:
            value = episode.values[name]
            if value != self._last[name]:
                self._last[name] = value
                found += self._new_maxima(name, value)
        if found:
            episode.info[MILESTONES] = found

    def _new_maxima(self, name: str, value: Value) -> Iterator[NewMilestone]:
        now = _as_tuple(value)
        for key, number, first in zip(_keys(name, value), now, self._first[name], strict=True):
            if number > first and is_new_maximum(number, self._best.get(key)):
                self._best[key] = number
                yield NewMilestone("variable", key, number)

    def save_state(self) -> Mapping[str, JsonValue]:
        state = MilestoneState(
            first=self._first, best=self._best, earned=tuple(sorted(self._earned))
        )
        return {"milestones": state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        if episode.running:
            state = tracker_state(saved, "milestones", MilestoneState)
            self.reset(episode)
            self._best = dict(state.best)
            self._earned = set(state.earned)
            known = {n: f for n, f in state.first.items() if len(f) == len(self._first.get(n, ()))}
            self._first |= known  # the game file may name other variables now


def is_new_maximum(value: float, best: float | None) -> bool:
    """Whether a value counts as a new maximum: it is higher by a twentieth of the best, or more."""
    return best is None or (value > best and value - best >= _GROWTH * abs(best))


def _as_tuple(value: Value) -> tuple[int | float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _keys(name: str, value: Value) -> Iterable[str]:
    if not isinstance(value, tuple):
        return (name,)
    return (f"{name}[{index}]" for index in range(len(value)))
