"""What an env notes of an episode, so that it can be played again: its beginning and its actions.

Noting a timestep appends one number to an array, which is all that the training pays for it.
"""

import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import JsonValue

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.game_boy_env import EnvState
from game_rl.files.saved import Blob, Natural, Saved

EPISODE_LOG = "episode_log"
"""Key of an episode's last `info`: its `EpisodeLog`, where the env notes them."""

_KEY = "notes"  # in the state of an env
BEGAN_UNNOTED = "it began before a checkpoint that has no notes of running episodes"


@dataclass(frozen=True, slots=True)
class EpisodeLog:
    """An episode of a game, apart from custom wrappers.

    Attributes:
        idle_frames: frames without a button with which it began.
        game_seed: value that `random_seed` of game.yaml got.
        timesteps: number of timesteps of the game.
        played: index of the action that each timestep played; one byte each, or two, little
            endian, in a game with more than 256 actions.
        chosen: likewise the actions that the agent chose; empty if they are those that were played,
            as they are without sticky actions.
        game_reward: sum of the game's reward terms.
        fault: why it cannot be played again from its beginning; empty if it can.
    """

    start_state: str
    idle_frames: int
    game_seed: int
    timesteps: int
    played: bytes
    chosen: bytes
    game_reward: float
    fault: str = ""


class NotesState(Saved):
    """The notes of a running episode, in a checkpoint."""

    idle_frames: Natural
    game_seed: Natural
    played: Blob
    """The actions so far, compressed."""
    chosen: Blob = b""
    fault: str = ""


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

    @classmethod
    def of(cls, parts: EnvParts) -> Self:
        return cls(len(parts.game.action_names), sticky=parts.config.sticky_actions > 0)

    def reset(self, episode: RunningEpisode) -> None:
        self._idle_frames = episode.idle_frames
        self._game_seed = episode.game_seed
        self._fault = ""
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
            start_state=episode.start_state,
            idle_frames=self._idle_frames,
            game_seed=self._game_seed,
            timesteps=len(self._played),
            played=self._played.tobytes(),
            chosen=b"" if self._chosen is None else self._chosen.tobytes(),
            game_reward=sum(episode.reward_terms.values()),
            fault=self._fault,
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
        )
        return {_KEY: state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:  # noqa: ARG002
        self._empty()
        if _KEY not in saved:
            self._fault = BEGAN_UNNOTED
            return
        state = tracker_state(saved, _KEY, NotesState)
        self._idle_frames = state.idle_frames
        self._game_seed = state.game_seed
        self._fault = state.fault
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
