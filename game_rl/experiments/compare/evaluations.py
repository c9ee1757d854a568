"""Reading of a run's evaluations."""

import numpy as np

from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.experiments.compare.outcome import Point, Score
from game_rl.lineage import Source, at, totals
from game_rl.run_dir import RunDir


def curve_of(run_dir: RunDir, own: Source) -> tuple[Point, ...]:
    """Return a run's evaluations, without those that a fork has from its parent.

    Args:
        own: the run itself.
    """
    episodes = read_episodes(run_dir)
    rates: list[float | None] = [float(np.mean(row)) for row in episodes.successes]
    rates = rates if len(rates) == len(episodes.timesteps) else [None] * len(episodes.timesteps)
    points = []
    for timesteps, rewards, rate in zip(episodes.timesteps, episodes.results, rates, strict=True):
        if timesteps < own.began_at:
            continue
        total_timesteps, total_frames = totals([at(own, timesteps)])
        points.append(
            Point(
                timesteps=timesteps,
                total_timesteps=total_timesteps,
                total_frames=total_frames,
                mean_reward=float(np.mean(rewards)),
                success_rate=rate,
            )
        )
    return tuple(points)


def last_evaluation(run_dir: RunDir) -> Score | None:
    episodes = read_episodes(run_dir)
    if not episodes.results:
        return None
    rewards, is_known = episodes.results[-1], len(episodes.successes) == len(episodes.results)
    rate = float(np.mean(episodes.successes[-1])) if is_known else None
    return Score(float(np.mean(rewards)), rate, len(rewards))
