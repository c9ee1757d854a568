"""How an episode gets on: what it reaches for the first time, and whether it goes round in circles.

What it reaches are reward terms and new maxima of variables. It goes round in circles if its states
repeat, or a reward term is earned in a loop.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.observation import SCREEN, Observation
from game_rl.files.saved import Saved
from game_rl.games.definition import GameDefinition
from game_rl.games.place import whole
from game_rl.games.variables import Value, Values, as_tuple

MILESTONES = "milestones"
"""Key of a timestep's `info`: what the episode has `NewMilestone` in it."""

_GROWTH = 0.05  # of a maximum, so that a score of eight digits has at most 400 of them


class NewMilestone(NamedTuple):
    """Something that an episode has reached.

    Attributes:
        kind: reward_term or variable.
        name: name of the term or variable; `flags[12]` for an element of an array.
        value: value of the variable; None for a term.
        place: where the player is after the timestep that reached it, in whole numbers; None if the
            game names none.
    """

    kind: str
    name: str
    value: int | float | None = None
    place: tuple[int, ...] | None = None


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
        place: those of its `place`.
    """

    def __init__(self, names: Sequence[str], place: Sequence[str] = ()) -> None:
        self._names = tuple(names)
        self._place = tuple(place)
        self.variables = frozenset((*names, *place))
        self._first: dict[str, tuple[int | float, ...]] = {}
        self._last: dict[str, Value | None] = dict.fromkeys(names)
        self._best: dict[str, int | float] = {}
        self._earned: set[str] = set()

    def reset(self, episode: RunningEpisode) -> None:
        values = episode.values
        self._first = {name: as_tuple(values[name]) for name in self._names}
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
            place = self._place_of(episode)
            episode.info[MILESTONES] = [each._replace(place=place) for each in found]

    def _place_of(self, episode: RunningEpisode) -> tuple[int, ...] | None:
        if not self._place:
            return None
        return tuple(whole(number) for n in self._place for number in as_tuple(episode.values[n]))

    def _new_maxima(self, name: str, value: Value) -> Iterator[NewMilestone]:
        now = as_tuple(value)
        keys = [name]
        if isinstance(value, tuple):
            keys = [f"{name}[{index}]" for index in range(len(value))]
        for key, number, first in zip(keys, now, self._first[name], strict=True):
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


STUCK_AFTER_TIMESTEPS = 256
"""Timesteps in a row without a new state after which an episode counts as stuck."""

_EVERY_TIMESTEPS = 8
# A loop has few states, so every eighth timestep shows the same few again: looking at each would
# find no more and cost eight times as much (`python -m benchmarks.repetition`).
_STATES = 128  # that are remembered, so loops of up to 1,024 timesteps are found
_STATES_OF_TERM = 64
_LEAST_EARNED = 8  # times in an episode, for a share of it to mean anything
_CHECKSUM = 0xFFFFFFFF  # bits of a hash, which is the same in each process for numbers
_MANY_NUMBERS = 64  # that are looked at rarely, because each costs


class RepetitionState(Saved):
    """What the guard remembers of the running episode."""

    states: tuple[int, ...] = ()
    """Checksums of the last new states."""
    repeated: int = 0
    """Timesteps in a row without a new state."""
    stuck: int = 0
    """Timesteps of stretches that count as stuck."""
    terms: dict[str, tuple[int, ...]] = Field(default={})
    """For each reward term: the timestep in which it was last earned, how often it was, how often
    in a state as before, and the states as checksums."""


class _TermLoop:
    """The states after which one reward term was earned in the running episode."""

    def __init__(self, saved: Sequence[int] = (-_EVERY_TIMESTEPS, 0, 0)) -> None:
        self.at, self.earned, self.repeats, *states = saved
        self._states = dict.fromkeys(states)  # a set in the order in which they came

    def note(self, timestep: int, state: int) -> None:
        self.at = timestep
        self.earned += 1
        if state in self._states:
            self.repeats += 1
            return
        self._states[state] = None
        if len(self._states) > _STATES_OF_TERM:
            del self._states[next(iter(self._states))]

    def saved(self) -> tuple[int, ...]:
        return (self.at, self.earned, self.repeats, *self._states)


class RepetitionGuard(EpisodeTracker):
    """Counts the timesteps in which a running episode is stuck, and rewards earned in a loop.

    An episode is stuck from the 256th timestep in a row on whose state was there before: the
    picture with the variables that a timestep reads, or all parts of an observation without a
    picture. Every eighth timestep is looked at. A term is earned in a loop if the variables of
    rewards, endings and the place are as they were when it was earned before. Only terms that pay
    for a change are looked at: others pay for being somewhere, or never twice.

    Args:
        definition: the game's. A game with a reward class of its own is looked at with all
            variables and terms. The variable of its `random_seed` is no part of a state.
        loopless: further terms that are not looked at, as no loop can pay by them.

    Attributes:
        stuck_timesteps: timesteps of the episode that are in stuck stretches.
    """

    def __init__(self, definition: GameDefinition, loopless: Collection[str] = ()) -> None:
        self._seed = definition.random_seed
        has_class = definition.reward is not None
        self._of_loops: frozenset[str] | None = None  # all
        if not has_class:
            named = {name for t in definition.rewards.values() for _, name in t.references()}
            named.update(n for e in definition.endings.values() for _, n in e.references())
            self._of_loops = frozenset(named.union(definition.place or ()))
        paying = {name for name, term in definition.rewards.items() if term.needs_change}
        ignored = set() if has_class else definition.rewards.keys() - paying
        self._ignored_terms = frozenset(ignored.union(loopless))
        self._numbers: Callable[[Values], object] = self._first_numbers
        self._loop_numbers: Callable[[Values], object] = self._first_loop_numbers
        self._gap = 1
        self._continue_from(RepetitionState())

    def reset(self, episode: RunningEpisode) -> None:  # noqa: ARG002
        self._continue_from(RepetitionState())

    def step(self, episode: RunningEpisode) -> None:
        timestep = episode.timesteps
        values = episode.values
        for name in episode.gained:
            if name in self._ignored_terms:
                continue
            loop = self._terms.get(name) or self._terms.setdefault(name, _TermLoop())
            if timestep - loop.at >= self._gap:
                loop.note(timestep, hash(self._loop_numbers(values)) & _CHECKSUM)
        if timestep % _EVERY_TIMESTEPS == 0:
            assert episode.observation is not None
            state = hash((_picture(episode.observation), self._numbers(values))) & _CHECKSUM
            self._look(state)

    def _look(self, state: int) -> None:
        if state not in self._states:
            self._states.append(state)
            self._repeated = 0
            return
        self._repeated += _EVERY_TIMESTEPS
        if self._repeated == STUCK_AFTER_TIMESTEPS:
            self.stuck_timesteps += STUCK_AFTER_TIMESTEPS
        elif self._repeated > STUCK_AFTER_TIMESTEPS:
            self.stuck_timesteps += _EVERY_TIMESTEPS

    @property
    def looped_terms(self) -> dict[str, float]:
        """How often each term was earned in a state in which it was earned before, as a share.

        Terms that were earned a few times are left out.
        """
        return {
            name: loop.repeats / loop.earned
            for name, loop in self._terms.items()
            if loop.earned >= _LEAST_EARNED
        }

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        return {"stuck_timesteps": self.stuck_timesteps, "looped_terms": self.looped_terms}

    def save_state(self) -> Mapping[str, JsonValue]:
        state = RepetitionState(
            states=tuple(self._states),
            repeated=self._repeated,
            stuck=self.stuck_timesteps,
            terms={name: loop.saved() for name, loop in self._terms.items()},
        )
        return {"repetition": state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:  # noqa: ARG002
        self._continue_from(tracker_state(saved, "repetition", RepetitionState))

    def _continue_from(self, state: RepetitionState) -> None:
        self._states = deque(state.states, _STATES)
        self._repeated = state.repeated
        self.stuck_timesteps = state.stuck
        self._terms = {name: _TermLoop(saved) for name, saved in state.terms.items()}

    def _first_numbers(self, values: Values) -> object:
        """Find out which variables a timestep reads, and return their values."""
        self._numbers = _getter([name for name in values if name != self._seed])
        return self._numbers(values)

    def _first_loop_numbers(self, values: Values) -> object:
        """The same for the variables with which loops are found."""
        known = values if self._of_loops is None else self._of_loops
        names = [name for name in values if name in known and name != self._seed]
        sizes = [len(v) if isinstance(v := values[name], tuple) else 1 for name in names]
        self._gap = _EVERY_TIMESTEPS if sum(sizes) > _MANY_NUMBERS else 1
        self._loop_numbers = _getter(names)
        return self._loop_numbers(values)


def _getter(names: Sequence[str]) -> Callable[[Values], object]:
    return itemgetter(*names) if names else len


def _picture(observation: Observation) -> object:
    if not isinstance(observation, Mapping):
        return _sum_of(observation)
    if SCREEN in observation:
        return _sum_of(observation[SCREEN])
    return tuple(_sum_of(observation[name]) for name in sorted(observation))


def _sum_of(array: NDArray[Any]) -> int:
    return crc32(np.ascontiguousarray(array).data)
