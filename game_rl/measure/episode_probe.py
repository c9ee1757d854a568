"""Measure how long episodes are by playing some with random buttons."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from game_rl.config.schema import RunConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_env
from game_rl.games.definition import Game
from game_rl.preflight.facts import EpisodeLengths
from game_rl.seeds import seed_for

_MOST_FRAMES = 20_000  # takes seconds, even with a ROM that never halts; 5 1/2 minutes of the game


def probe_episodes(
    config: RunConfig, game: Game, *, episodes: int = 10, most_frames: int = _MOST_FRAMES
) -> EpisodeLengths:
    """Play up to `episodes` episodes in this process; the run's seed makes them repeatable.

    All episodes together take at most `most_frames` emulator frames. An episode that this limit
    cuts short counts only if it is the first one, as truncated.
    """
    seed = seed_for(config.seed, "probe")
    rng = np.random.default_rng(seed)
    left = max(most_frames // config.env.frame_skip, 1)
    played: list[_Episode] = []
    with closing(make_env(config.env, game)) as env:
        env.reset(seed=seed)
        while left > 0 and len(played) < episodes:
            episode = _play(env, game, rng, most_timesteps=left)
            left -= episode.timesteps
            if episode.is_over or not played:
                played.append(episode)
            env.reset()
    known = [episode.success for episode in played if episode.success is not None]
    return EpisodeLengths(
        tuple(episode.timesteps for episode in played),
        sum(known) if known else None,
        sum(not episode.terminated for episode in played),
    )


@dataclass(frozen=True)
class _Episode:
    timesteps: int
    terminated: bool
    is_over: bool
    success: bool | None


def _play(
    env: GameBoyEnv, game: Game, rng: np.random.Generator, *, most_timesteps: int
) -> _Episode:
    """Play an episode with random buttons in an env that was reset."""
    for timesteps in range(1, most_timesteps + 1):
        action = int(rng.integers(len(game.action_names)))
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            success = info.get("is_success")
            known = None if success is None else bool(success)
            return _Episode(timesteps, terminated, True, known)
    return _Episode(most_timesteps, False, False, None)
