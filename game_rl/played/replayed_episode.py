"""Playing a recorded episode again as a run sees it, in the process of an emulator."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import innermost, make_env
from game_rl.game_check.recorded_episode import LONGEST_EPISODE_TIMESTEPS
from game_rl.played.played_files import PlayedFile


@dataclass(frozen=True)
class EpisodePlay:
    """An episode to play.

    Attributes:
        env: the run's own env; see `env_to_replay`.
        folder: folder in which modules of wrappers are looked for.
        file: what to play: the actions, or the buttons as they were held.
    """

    env: EnvConfig
    folder: Path
    file: PlayedFile


@dataclass(frozen=True)
class ReplayedEpisode:
    """What a run sees of an episode.

    Attributes:
        frames: packed, uint8 [n + 1, row_bytes], with the one before the first timestep.
        actions: int64 [n].
        rewards: float32 [n].
        reward: sum of the rewards of game.yaml.
        terminated: whether the game was over after the last timestep.
        ending: name of the ending; empty if the play ends before the episode does.
        success: None if the game does not say what success is, or the play ends before.
    """

    frames: NDArray[np.uint8]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    reward: float
    terminated: bool
    ending: str
    success: bool | None

    @property
    def n_timesteps(self) -> int:
        return len(self.actions)


def env_to_replay(config: EnvConfig) -> EnvConfig:
    """Return the run's env without what would change a recorded play: a limit, drawn actions.

    The limit of an episode is not seen by the agent, and a person may play on beyond it.
    """
    return config.model_copy(
        update={
            "max_episode_timesteps": LONGEST_EPISODE_TIMESTEPS,
            "sticky_actions": 0.0,
            "start_states": None,
            "pool": None,
        }
    )


def replayed_episode(env: GameEnv, play: EpisodePlay) -> ReplayedEpisode:
    """Play an episode in the process of `env`, which is left as it is; what follows its end is
    left out.
    """
    game = innermost(env).game
    rewards: list[float] = []
    terminated = False
    ending = ""
    success: bool | None = None
    file = play.file
    with closing(make_env(play.env, game, folder=play.folder)) as player:
        inner = innermost(player)
        form = inner.packing
        observation, _ = player.reset(seed=file.episode.seed, options=dict(file.episode.options))
        frames = [form.pack(observation)]
        for number, action in enumerate(file.actions):
            if file.presses:
                inner.player.instead = file.presses[number]
            observation, earned, terminated, truncated, info = player.step(action)
            frames.append(form.pack(observation))
            rewards.append(earned)
            if terminated or truncated:
                ending = str(info.get("ending", ""))
                if "is_success" in info:
                    success = bool(info["is_success"])
                break
        terms = inner.reward_terms.items()
        reward = sum(sum_ for name, sum_ in terms if name not in play.env.rewards)
    return ReplayedEpisode(
        frames=np.stack(frames),
        actions=np.asarray(file.actions[: len(rewards)], np.int64),
        rewards=np.asarray(rewards, np.float32),
        reward=reward,
        terminated=terminated,
        ending=ending,
        success=success,
    )
