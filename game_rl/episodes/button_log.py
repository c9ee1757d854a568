"""What an env notes of an episode, its beginning and its actions, and playing it again from that.

Noting a timestep appends one number to an array, which is all that the training pays for it.
"""

import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self, cast

import numpy as np
from numpy.random import Generator
from pydantic import Field, JsonValue

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_starts import PoolBeginning, StartPool, pool_draw
from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.observation import Observation
from game_rl.files.saved import Blob, Natural, Saved

LIMIT = "(limit)"
LOCKED_UP = "(locked up)"
WORKER_DIED = "(worker died)"
BY_WRAPPER = "(wrapper)"
"""Endings other than those that the game names, which have no parentheses."""

EPISODE_LOG = "episode_log"
"""Key of an episode's last `info`: its `EpisodeLog`, where the env notes them."""

_KEY = "notes"  # in the state of an env
BEGAN_UNNOTED = "it started before a checkpoint that does not record episodes in progress"


@dataclass(frozen=True, slots=True)
class EpisodeLog:
    """An episode of a game, apart from custom wrappers.

    Attributes:
        start_state: where it began; `POOL` if that was in a state of a pool.
        idle_frames: frames without a button with which it began.
        game_seed: value that `random_seed` of game.yaml got.
        timesteps: number of timesteps of the game.
        played: index of the action that each timestep played; one byte each, or two, little
            endian, in a game with more than 256 actions.
        chosen: likewise the actions that the agent chose; empty if they are those that were played,
            as they are without sticky actions.
        game_reward: sum of the game's reward terms.
        fault: why it cannot be played again from its beginning; empty if it can.
        beginning: the state of a pool in which it began; None: it began in the start state.
    """

    start_state: str
    idle_frames: int
    game_seed: int
    timesteps: int
    played: bytes
    chosen: bytes
    game_reward: float
    fault: str = ""
    beginning: PoolBeginning | None = None

    @property
    def actions(self) -> list[int]:
        """Index of the action that each timestep played."""
        return self._indices(self.played)

    @property
    def choices(self) -> list[int]:
        """Index of the action that the agent chose at each timestep."""
        return self._indices(self.chosen or self.played)

    def _indices(self, actions: bytes) -> list[int]:
        code = np.dtype(np.uint8 if len(actions) == self.timesteps else np.uint16)
        found: list[int] = np.frombuffer(actions, code).tolist()
        return found


class NotesState(Saved):
    """The notes of a running episode, in a checkpoint."""

    idle_frames: Natural
    game_seed: Natural
    played: Blob
    """The actions so far, compressed."""
    chosen: Blob = b""
    fault: str = ""
    beginning: Annotated[PoolBeginning | None, Field(exclude_if=lambda state: state is None)] = None
    """The state of a pool in which it began, as the pool may drop it; left out if it did not."""


class EpisodeNotes(EpisodeTracker):
    """The notes of the running episode.

    Args:
        n_actions: number of the game's actions.
        sticky: whether the game may play another action than the agent chose.
    """

    def __init__(self, n_actions: int, *, sticky: bool) -> None:
        code = "B" if n_actions <= 256 else "H"
        self._played = array(code)
        self._chosen = array(code) if sticky else None
        self._idle_frames = 0
        self._game_seed = 0
        self._fault = BEGAN_UNNOTED
        self._beginning: PoolBeginning | None = None

    @classmethod
    def of(cls, parts: EnvParts) -> Self:
        return cls(len(parts.game.action_names), sticky=parts.config.sticky_actions > 0)

    def reset(self, episode: RunningEpisode) -> None:
        self._idle_frames = episode.idle_frames
        self._game_seed = episode.game_seed
        self._fault = ""
        self._beginning = episode.beginning
        self._empty()

    def step(self, episode: RunningEpisode) -> None:
        self._played.append(episode.played)
        if self._chosen is not None:
            self._chosen.append(episode.chosen)

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:
        self.step(episode)
        return self.summary(episode)

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:
        log = EpisodeLog(
            start_state=episode.began_in,
            idle_frames=self._idle_frames,
            game_seed=self._game_seed,
            timesteps=len(self._played),
            played=self._played.tobytes(),
            chosen=b"" if self._chosen is None else self._chosen.tobytes(),
            game_reward=sum(episode.reward_terms.values()),
            fault=self._fault,
            beginning=self._beginning,
        )
        return {EPISODE_LOG: log}

    def spoil(self, fault: str) -> None:
        """Mark the running episode as one that cannot be played again, for this reason."""
        self._fault = self._fault or fault

    def save_state(self) -> Mapping[str, JsonValue]:
        state = NotesState(
            idle_frames=self._idle_frames,
            game_seed=self._game_seed,
            played=zlib.compress(self._played.tobytes()),
            chosen=b"" if self._chosen is None else zlib.compress(self._chosen.tobytes()),
            fault=self._fault,
            beginning=self._beginning,
        )
        return {_KEY: state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:  # noqa: ARG002
        self._empty()
        self._beginning = None
        if _KEY not in saved:
            self._fault = BEGAN_UNNOTED
            return
        state = tracker_state(saved, _KEY, NotesState)
        self._idle_frames = state.idle_frames
        self._game_seed = state.game_seed
        self._fault = state.fault
        self._beginning = state.beginning
        self._played.frombytes(zlib.decompress(state.played))
        if self._chosen is not None:
            # without sticky actions, the agent's choices were the actions that were played
            chosen = state.chosen or state.played
            self._chosen.frombytes(zlib.decompress(chosen))

    def _empty(self) -> None:
        del self._played[:]
        if self._chosen is not None:
            del self._chosen[:]


def spoil_notes(env: GameEnv, fault: str) -> None:
    """Note why the running episode of an env cannot be played again, if the env notes episodes."""
    notes = env.tracker(EpisodeNotes)
    if notes is not None:
        notes.spoil(fault)


def with_spoiled_notes(state: EnvState, fault: str) -> EnvState:
    """Return an env's state with the reason why the running episode cannot be played again."""
    if _KEY not in state.trackers:
        return state
    notes = tracker_state(state.trackers, _KEY, NotesState)
    spoiled = notes.model_copy(update={"fault": notes.fault or fault}).model_dump(mode="json")
    return state.model_copy(update={"trackers": {**state.trackers, _KEY: spoiled}})


class PlayedAgain(NamedTuple):
    """A timestep that was played again.

    Attributes:
        action: index of the action that the game played.
        reward: sum of the rewards of the episode so far, in float32 as a vec env adds them up.
    """

    action: int
    observation: Observation
    reward: float


class _LoggedDraws:
    """Takes the place of the env's generator, which decides when an action is repeated."""

    repeats = False

    def random(self) -> float:
        return 0.0 if self.repeats else 1.0


class LoggedPlay:
    """An episode that is played again.

    Args:
        env: an env of the same game and settings, without custom wrappers.
        log: an episode without a fault.

    Attributes:
        is_over: whether the env has ended the episode.
        left: timesteps of the log that were not played, as the episode was over before.
        reward: as in `PlayedAgain`.
        ending: why it has ended, as in an `EndedEpisode`; empty before.
        success: None if the game does not define it, or before the end.
    """

    def __init__(self, env: GameBoyEnv, log: EpisodeLog) -> None:
        self._env = env
        self._log = log
        self._played = log.actions
        self._chosen = log.choices
        self.is_over = False
        self.left = len(self._played)
        self.reward = 0.0
        self.ending = ""
        self.success = cast("bool | None", None)

    def begin(self) -> Observation:
        """Begin the episode where it began, and return its first observation."""
        log = self._log
        options: dict[str, str | int] = {
            "idle_frames": log.idle_frames,
            "game_seed": log.game_seed,
        }
        state = log.beginning
        if state is None:
            options["start_state"] = log.start_state
        else:
            only = pool_draw(1.0, [state.number], [1.0])
            self._env.starts.pool = StartPool(only, {state.number: state})
        observation, _ = self._env.reset(seed=0, options=options)
        return observation

    def steps(self) -> Iterator[PlayedAgain]:
        """Play the timesteps of the log, or fewer if the episode is over before."""
        env = self._env
        draws = _LoggedDraws()
        total = np.float32(0)
        env.np_random = cast("Generator", draws)
        for played, chosen in zip(self._played, self._chosen, strict=True):
            if self.is_over:
                return
            draws.repeats = played != chosen
            observation, reward, terminated, truncated, info = env.step(chosen)
            total += np.float32(reward)
            self.reward = float(total)
            self.left -= 1
            self.is_over = terminated or truncated
            if self.is_over:
                self.ending = LOCKED_UP if "lock_up" in info else str(info.get("ending", LIMIT))
                self.success = info.get("is_success")
            yield PlayedAgain(played, observation, self.reward)

    @property
    def game_reward(self) -> float:
        return sum(self._env.reward_terms.values())
