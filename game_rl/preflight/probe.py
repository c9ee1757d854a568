"""How long an episode really is: play some with random buttons."""

from contextlib import closing
from dataclasses import dataclass
from statistics import median

import numpy as np

from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import Game
from game_rl.seeds import seed_for


@dataclass(frozen=True)
class EpisodeLengths:
    """Of random play, in timesteps.

    Attributes:
        successes: episodes that the game file calls a success; None if it does not say.
        truncated: episodes that max_episode_timesteps cut short.
    """

    timesteps: tuple[int, ...]
    successes: int | None
    truncated: int

    @property
    def median(self) -> float:
        return median(self.timesteps)

    @property
    def shortest(self) -> int:
        return min(self.timesteps)

    @property
    def longest(self) -> int:
        return max(self.timesteps)


def probe_episodes(config: RunConfig, game: Game, *, episodes: int = 10) -> EpisodeLengths:
    """Play `episodes` episodes in this process; the run's seed makes them repeatable."""
    seed = seed_for(config.seed, "probe")
    rng = np.random.default_rng(seed)
    with closing(make_env(config.env, game)) as env:
        played = []
        for episode in range(episodes):
            env.reset(seed=seed if episode == 0 else None)
            timesteps, over = 0, False
            while not over:
                action = int(rng.integers(len(game.action_names)))
                _, _, terminated, truncated, info = env.step(action)
                timesteps += 1
                over = terminated or truncated
            played.append((timesteps, info.get("is_success"), truncated))
    lengths, successes, cut = zip(*played, strict=True)
    known = [bool(success) for success in successes if success is not None]
    return EpisodeLengths(lengths, sum(known) if known else None, sum(map(bool, cut)))
