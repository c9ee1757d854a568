"""Run directories and populations as outcomes; they are only read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.config.changed_values import flat
from game_rl.config.experiments import Population, kind_of, load_population
from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.event_log import read_events
from game_rl.events import Ended, Evaluated
from game_rl.experiments.compare.outcome import Point, Score
from game_rl.experiments.experiment_dir import ExperimentDir, run_of
from game_rl.experiments.records import ChampionRecord, read_record
from game_rl.lineage import Source, account_of, counted_once
from game_rl.run_dir import RunDir

_NO_DIFFERENCE = ("seed", "run_dir", "recording", "upload", "env.n_workers", "env.worker_timeout_s")
_NO_DIFFERENCE_OF_POPULATIONS = (
    *_NO_DIFFERENCE,
    "executor",
    "keep_generations",
    "member",
    "learner",
)
_NO_DIFFERENCE_WITH_LEARNER = (*_NO_DIFFERENCE, "lake.path", "algorithm.learn_from.lakes")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a folder holds.

    Attributes:
        settings: its config without what makes no arm of its own, such as the seed.
        final: of episodes that selected nothing; None where it has not come to its end.
        last: of its newest evaluation.
        failure: why it broke off; empty: it did not.
    """

    path: Path
    seed: int
    settings: dict[str, object]
    curve: tuple[Point, ...]
    timesteps: int
    total_timesteps: int
    total_frames: int
    final: Score | None
    last: Score | None
    failure: str = ""


def read_folder(path: Path) -> Found:
    """A run, or a population with its champion.

    Raises:
        UsageError: it is neither, or has no champion yet.
    """
    folder = ExperimentDir(path)
    if not folder.exists():
        return _run(path)
    if (kind := kind_of(folder.config)) != "population":
        raise UsageError(f"{path} is of kind {kind}, which cannot be compared; name runs in it")
    return _population(folder)


def _run(path: Path) -> Found:
    run_dir = RunDir(path)
    if not run_dir.exists():
        raise UsageError(
            f"{path} is not a run directory: it has no {run_dir.config.name}; name the run_dir of "
            "a training or of a population, or a study's file"
        )
    config = load_config(run_dir.config, is_saved=True)
    own = played_by(run_dir, config.env.frame_skip)
    final, failure = _end_of(run_dir)
    total_timesteps, total_frames = totals([own], own.timesteps)
    return Found(
        path=path,
        seed=config.seed,
        settings=_settings(config.model_dump(mode="json"), _NO_DIFFERENCE),
        curve=curve_of(run_dir, [own]),
        timesteps=own.played_timesteps,
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        final=final,
        last=last_evaluation(run_dir),
        failure=failure,
    )


def _population(folder: ExperimentDir) -> Found:
    champion = RunDir(run_of(folder.root))
    population = load_population(folder.config, is_saved=True)
    everybody = [
        played_by(RunDir(path), population.run.env.frame_skip)
        for path in sorted(folder.members.iterdir())
        if RunDir(path).exists()
    ]
    record = read_record(folder.champion_record, ChampionRecord)
    assert record is not None
    until = max(source.timesteps for source in everybody)
    total_timesteps, total_frames = totals(everybody, until)
    final = record.final
    return Found(
        path=folder.root,
        seed=population.config.seed,
        settings=_settings_of_population(population),
        # with a learner, runs count their timesteps from different moments
        curve=curve_of(champion, everybody) if population.learner is None else (),
        timesteps=int(record.checkpoint),
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        final=Score(final.mean_reward, final.success_rate, final.episodes),
        last=last_evaluation(champion),
    )


def _settings_of_population(population: Population) -> dict[str, object]:
    config, learner = population.config, population.learner
    found = _settings(config.model_dump(mode="json"), _NO_DIFFERENCE_OF_POPULATIONS)
    runs = {"member": population.run} | ({} if learner is None else {"learner": learner})
    left_out = _NO_DIFFERENCE if learner is None else _NO_DIFFERENCE_WITH_LEARNER
    for section, run in runs.items():
        own = _settings(run.model_dump(mode="json"), left_out)
        found |= {f"{section}.{key}": value for key, value in own.items()}
    if learner is not None:
        found |= {"inject_every": config.inject_every, "is_taught": config.is_taught}
    return found


def played_by(run_dir: RunDir, frame_skip: int) -> Source:
    """The run, as far as its account and its checkpoints go, with all that it comes from."""
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    told = [event.timesteps for event in read_events(run_dir)[-1:]]
    return account_of(run_dir, max(saved + told, default=0), frame_skip=frame_skip).run


def totals(runs: Sequence[Source], timesteps: int) -> tuple[int, int]:
    """Timesteps and frames that all of them, and all that they come from, had played when they
    were at this timestep.
    """
    then = [
        run.model_copy(update={"timesteps": min(run.timesteps, timesteps)})
        for run in runs
        if run.began_at <= timesteps
    ]
    counted = counted_once(then)
    return sum(each.played_timesteps for each in counted), sum(each.frames for each in counted)


def curve_of(run_dir: RunDir, everybody: Sequence[Source]) -> tuple[Point, ...]:
    """The run's evaluations; without those that a fork has from its parent.

    Args:
        everybody: who was playing at the same time, the run itself among them.
    """
    episodes, began_at = read_episodes(run_dir), min((r.began_at for r in everybody), default=0)
    rates: list[float | None] = [float(np.mean(row)) for row in episodes.successes]
    rates = rates if len(rates) == len(episodes.timesteps) else [None] * len(episodes.timesteps)
    points = []
    for timesteps, rewards, rate in zip(episodes.timesteps, episodes.results, rates, strict=True):
        if timesteps < began_at:
            continue
        total_timesteps, total_frames = totals(everybody, timesteps)
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


def _settings(config: dict[str, object], left_out: Sequence[str]) -> dict[str, object]:
    items = flat(config)
    return {
        key: value
        for key, value in items.items()
        if not any(f"{key}.".startswith(f"{part}.") for part in left_out)
    }
