"""Run directories as outcomes; they are only read."""

from pathlib import Path

import numpy as np

from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.event_log import read_events
from game_rl.events import Ended, Evaluated
from game_rl.experiments.compare.experiments import read_experiment
from game_rl.experiments.compare.found import NO_DIFFERENCE, Found, settings_of
from game_rl.experiments.compare.outcome import Point, Score
from game_rl.experiments.compare.played import at, played_by, totals
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.lineage import Source
from game_rl.run_dir import RunDir


def read_folder(path: Path) -> Found:
    """A run, or a population or mixture with its champion.

    Raises:
        UsageError: it is neither, or has no champion yet.
    """
    folder = ExperimentDir(path)
    return read_experiment(folder) if folder.exists() else _run(path)


def _run(path: Path) -> Found:
    run_dir = RunDir(path)
    if not run_dir.exists():
        raise UsageError(
            f"{path} is not a run directory: it has no {run_dir.config.name}; name the run_dir of "
            "a training or of an experiment, or a study's file"
        )
    config = load_config(run_dir.config, is_saved=True)
    own = played_by(run_dir, config.env.frame_skip)
    final, failure = _end_of(run_dir)
    total_timesteps, total_frames = totals([own])
    return Found(
        path=path,
        seed=config.seed,
        settings=settings_of(config.model_dump(mode="json"), NO_DIFFERENCE),
        curve=curve_of(run_dir, own),
        timesteps=own.played_timesteps,
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        final=final,
        last=last_evaluation(run_dir),
        failure=failure,
    )


def curve_of(run_dir: RunDir, own: Source) -> tuple[Point, ...]:
    """The run's evaluations; without those that a fork has from its parent.

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


def _end_of(run_dir: RunDir) -> tuple[Score | None, str]:
    """The final evaluation of a run that is complete, and why one that is not has failed."""
    events = read_events(run_dir)
    ends = [event for event in events if isinstance(event, Ended)]
    if ends and events[-1] is ends[-1] and ends[-1].reason == "failed":
        return None, ends[-1].text.splitlines()[0] if ends[-1].text else "it failed"
    finals = [event for event in events if isinstance(event, Evaluated) and event.is_final]
    if not (finals and ends and ends[-1].reason == "completed"):
        return None, ""
    final = finals[-1]
    return Score(final.mean_reward, final.success_rate, final.episodes), ""
