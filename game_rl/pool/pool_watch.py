"""The part of a pool in a worker: the states from which an env draws, and those that it finds."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import JsonValue

from game_rl.emulator.emulator import Emulator
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_starts import PoolBeginning, PoolDraw, StartPool
from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.make_env import innermost
from game_rl.files.saved import Blob, Natural, Saved

_KEY = "pool"  # in the state of an env


class FoundState(Saved):
    """A state that an episode of the training has reached; see `PoolBeginning`.

    Attributes:
        value: that of the variable of `save_on`.
    """

    state: Blob
    start_state: str
    reward: float
    timesteps: Natural
    value: int | float


class PoolWatchState(Saved):
    """What an env has of the pool for itself."""

    reached: float | None = None
    """See `StartPool`."""
    way_reward: float = 0.0
    way_timesteps: Natural = 0
    """Of the way to the beginning of the running episode."""
    best: int | float | None = None
    """Maximum of the variable of `save_on` in the running episode."""
    found: tuple[FoundState, ...] = ()
    """States that nobody has taken yet."""


class PoolWatch(EpisodeTracker):
    """Holds an env's part of the pool, and saves states on new maxima of a variable.

    Args:
        variable: whose new maximum in an episode saves a state; None: none is saved.

    Attributes:
        pool: the states from which the env draws.
        highest: highest value of the variable in a state that any env has saved, as far as known.
    """

    def __init__(self, variable: str | None, emulator: Emulator) -> None:
        self._variable = variable
        self._emulator = emulator
        self.variables = frozenset() if variable is None else frozenset([variable])
        self.pool = StartPool()
        self.highest: int | float | None = None
        self._found: list[FoundState] = []
        self._best: int | float | None = None
        self._way_reward = 0.0
        self._way_timesteps = 0

    @classmethod
    def of(cls, parts: EnvParts) -> Self | None:
        settings = parts.config.pool
        if settings is None:
            return None
        saves = settings.save_on
        return cls(None if saves is None else saves.new_maximum, parts.emulator)

    def reset(self, episode: RunningEpisode) -> None:
        beginning = episode.beginning
        self._way_reward = 0.0 if beginning is None else beginning.reward
        self._way_timesteps = 0 if beginning is None else beginning.timesteps
        self._best = None
        if self._variable is not None:
            self._best = self._value(episode)

    def step(self, episode: RunningEpisode) -> None:
        if self._variable is None:
            return
        value = self._value(episode)
        if self._best is not None and value <= self._best:
            return
        self._best = value
        if episode.terminated or (self.highest is not None and value < self.highest):
            return
        self.highest = value
        found = FoundState(
            state=self._emulator.save_state(picture=False),
            start_state=episode.start_state,
            reward=self._way_reward + sum(episode.reward_terms.values()),
            timesteps=self._way_timesteps + episode.timesteps,
            value=value,
        )
        self._found.append(found)

    def _value(self, episode: RunningEpisode) -> int | float:
        assert self._variable is not None
        value: int | float | tuple[int | float, ...] = episode.values[self._variable]
        assert not isinstance(value, tuple)
        return value

    def take(self) -> tuple[FoundState, ...]:
        """Return the states that were found, and forget them."""
        found = tuple(self._found)
        self._found.clear()
        return found

    def save_state(self) -> Mapping[str, JsonValue]:
        state = PoolWatchState(
            reached=self.pool.reached,
            way_reward=self._way_reward,
            way_timesteps=self._way_timesteps,
            best=self._best,
            found=tuple(self._found),
        )
        return {_KEY: state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        state = tracker_state(saved, _KEY, PoolWatchState)
        self.pool.reached = state.reached
        self._way_reward = state.way_reward
        self._way_timesteps = state.way_timesteps
        self._best = state.best
        if self._best is None and self._variable is not None and episode.running:
            self._best = self._value(episode)  # the run saves states since its resume only
        self._found = list(state.found)
        self.highest = max((each.value for each in state.found), default=None)


def take_found(env: GameEnv) -> tuple[FoundState, ...]:
    """Return the states that an env has found since the last call."""
    watch = env.tracker(PoolWatch)
    return () if watch is None else watch.take()


def hand_pool(
    env: GameEnv,
    draw: PoolDraw | None,
    new: Sequence[PoolBeginning],
    highest: int | float | None,
) -> tuple[int, ...]:
    """Let an env draw in this way from now on.

    Args:
        new: states that it may not have yet.
        highest: see `PoolWatch`.

    Returns:
        Numbers of states that it lacks, because its process is a new one. If there are any, it
        draws from none until it was called again with them.
    """
    watch = env.tracker(PoolWatch)
    assert watch is not None
    if highest is not None:
        watch.highest = highest if watch.highest is None else max(watch.highest, highest)
    pool = innermost(env).starts.pool = watch.pool
    pool.draw = None
    if draw is None:
        pool.states = {}
        return ()
    known = pool.states | {each.number: each for each in new}
    missing = tuple(number for number in draw.numbers if number not in known)
    if not missing:
        pool.states = {number: known[number] for number in draw.numbers}
        pool.draw = draw
    return missing
