"""Episodes that go round in circles: their states repeat, or a reward term is earned in a loop."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any
from zlib import crc32

from numpy.typing import NDArray
from pydantic import Field

from game_rl.envs.observation import SCREEN, Observation
from game_rl.games.variables import Values
from game_rl.saved import Saved

STUCK_AFTER_TIMESTEPS = 256
"""Timesteps in a row without a new state after which an episode counts as stuck."""

_EVERY_TIMESTEPS = 8
# A loop has few states, so every eighth timestep shows the same few again: looking at each would
# find no more and cost eight times as much (`python -m benchmarks.repetition_cost`).
_STATES = 128  # that are remembered, so loops of up to 1,024 timesteps are found
_STATES_OF_TERM = 32
_LEAST_SAMPLES = 4


class RepetitionState(Saved):
    """What the guard remembers of the running episode."""

    states: tuple[int, ...] = ()
    """Checksums of the last new states."""
    repeated: int = 0
    """Timesteps in a row without a new state."""
    stuck: int = 0
    """Timesteps of stretches that count as stuck."""
    terms: dict[str, tuple[int, ...]] = Field(default={})
    """For each reward term: timestep of the last sample, samples, repeated ones, checksums."""


class _TermLoop:
    """The states after which one reward term was earned in the running episode."""

    def __init__(self, saved: Sequence[int] = (-_EVERY_TIMESTEPS, 0, 0)) -> None:
        self.at, self.samples, self.repeats, *states = saved
        self._states = deque(states, _STATES_OF_TERM)

    def note(self, timestep: int, state: int) -> None:
        self.at = timestep
        self.samples += 1
        if state in self._states:
            self.repeats += 1
        else:
            self._states.append(state)

    def saved(self) -> tuple[int, ...]:
        return (self.at, self.samples, self.repeats, *self._states)


class RepetitionGuard:
    """Counts the timesteps in which a running episode is stuck, and rewards earned in a loop.

    A state is the picture with the variables that a timestep reads, or all parts of an observation
    without a picture. An episode is stuck from the 256th timestep in a row on whose state was there
    before. A term is earned in a loop if its state was there when it was earned before. Every
    eighth timestep is looked at.

    Args:
        ignored: a variable that is no part of the state, as the seed of the game's random numbers.

    Attributes:
        stuck_timesteps: timesteps of the episode that are in stuck stretches.
    """

    def __init__(self, ignored: str | None) -> None:
        self._ignored = ignored
        self._numbers: Callable[[Values], object] | None = None
        self.load_state(RepetitionState())

    def reset(self) -> None:
        self.load_state(RepetitionState())

    def step(
        self, timestep: int, values: Values, observation: Observation, gained: Sequence[str]
    ) -> None:
        """Look at the game after a timestep.

        Args:
            timestep: its number in the episode.
            gained: reward terms that have earned more than 0 in it.
        """
        state: int | None = None
        for name in gained:
            loop = self._terms.get(name) or self._terms.setdefault(name, _TermLoop())
            if timestep - loop.at >= _EVERY_TIMESTEPS:
                state = self._checksum(values, observation) if state is None else state
                loop.note(timestep, state)
        if timestep % _EVERY_TIMESTEPS == 0:
            self._look(self._checksum(values, observation) if state is None else state)

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
        """Share of the samples of each term that were in a state in which it was earned before.

        Terms with few samples are left out.
        """
        return {
            name: loop.repeats / loop.samples
            for name, loop in self._terms.items()
            if loop.samples >= _LEAST_SAMPLES
        }

    def save_state(self) -> RepetitionState:
        return RepetitionState(
            states=tuple(self._states),
            repeated=self._repeated,
            stuck=self.stuck_timesteps,
            terms={name: loop.saved() for name, loop in self._terms.items()},
        )

    def load_state(self, state: RepetitionState) -> None:
        self._states = deque(state.states, _STATES)
        self._repeated, self.stuck_timesteps = state.repeated, state.stuck
        self._terms = {name: _TermLoop(saved) for name, saved in state.terms.items()}

    def _checksum(self, values: Values, observation: Observation) -> int:
        """Return a number that is the same for the same state, in each process."""
        if self._numbers is None:
            names = [name for name in values if name != self._ignored]
            self._numbers = itemgetter(*names) if names else len
        return hash((_picture(observation), self._numbers(values))) & 0xFFFFFFFF


def _picture(observation: Observation) -> object:
    if not isinstance(observation, Mapping):
        return _sum_of(observation)
    if SCREEN in observation:
        return _sum_of(observation[SCREEN])
    return tuple(_sum_of(observation[name]) for name in sorted(observation))


def _sum_of(array: NDArray[Any]) -> int:
    return crc32(array.data)
