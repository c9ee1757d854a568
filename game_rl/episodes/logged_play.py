"""Playing an episode again in an env, from its log."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import Observation
from game_rl.episodes.button_log import EpisodeLog
from game_rl.episodes.episode_files import LIMIT, LOCKED_UP


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
        code = np.dtype(np.uint8 if len(log.played) == log.timesteps else np.uint16)
        self._played: list[int] = np.frombuffer(log.played, code).tolist()
        chosen: list[int] = np.frombuffer(log.chosen, code).tolist()
        self._chosen = chosen or self._played
        self.is_over = False
        self.left = len(self._played)
        self.reward = 0.0
        self.ending = ""
        self.success = cast("bool | None", None)

    def begin(self) -> Observation:
        """Begin the episode where it began, and return its first observation."""
        log = self._log
        options = {
            "start_state": log.start_state,
            "idle_frames": log.idle_frames,
            "game_seed": log.game_seed,
        }
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
                self.ending = _ending(info)
                self.success = info.get("is_success")
            yield PlayedAgain(played, observation, self.reward)

    @property
    def game_reward(self) -> float:
        return sum(self._env.reward_terms.values())


def _ending(info: dict[str, Any]) -> str:
    return LOCKED_UP if "lock_up" in info else str(info.get("ending", LIMIT))
