"""Reading runs and experiments for a comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.checkpoints.named import find_run
from game_rl.config.allowed_changes import ARM_FILE, ARM_OF_EXPERIMENTS
from game_rl.config.experiments.experiment import Experiment, load_experiment
from game_rl.config.loader import load_config
from game_rl.config.strict_model import is_below
from game_rl.events import Begun, Ended, Resumed
from game_rl.events.event_log import final_evaluation, read_events
from game_rl.events.lineage import Source, at, played_by, totals
from game_rl.experiments.compare.comparison import ComparedFolder, Point, Score, Totals, settings_of
from game_rl.experiments.experiment_dir import ExperimentDir, run_of
from game_rl.experiments.records import (
    ChampionRecord,
    GenerationRecord,
    TrainedMember,
    parents_of,
    read_record,
    read_records,
)
from game_rl.files.run_dir import RunDir


def read_folder(path: Path) -> ComparedFolder:
    """Read a run, or a population or mixture with its champion.

    Raises:
        UsageError: the folder holds neither, or there is no champion yet.
    """
    folder = ExperimentDir(path)
    if folder.exists():
        return read_experiment(folder)
    run_dir = find_run(path)
    config = load_config(run_dir.config, is_saved=True)
    score, failure = _end_of(run_dir)
    return ComparedFolder(
        name=str(path),
        seed=config.seed,
        settings=settings_of(config),
        score=score,
        last=last_evaluation(run_dir),
        failure=failure,
        **vars(totals_of_run(run_dir, config.env.frame_skip)),
    )


def changed_games(folder: Path) -> tuple[str, ...]:
    """Return how start states changed the game of a run, or of an experiment's members."""
    members = ExperimentDir(folder).members
    runs = [RunDir(folder)]
    if members.is_dir():
        runs = [RunDir(path) for path in sorted(members.iterdir())]
    events = (event for run in runs if run.exists() for event in read_events(run))
    changes = (e.game_changes for e in events if isinstance(e, Begun | Resumed))
    return tuple(dict.fromkeys(chain.from_iterable(changes)))


def totals_of_run(run_dir: RunDir, frame_skip: int) -> Totals:
    own = played_by(run_dir, frame_skip)
    total_timesteps, total_frames = totals([own])
    return Totals(
        timesteps=own.played_timesteps,
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        curve=evaluation_points(run_dir, own),
    )


def _end_of(run_dir: RunDir) -> tuple[Score | None, str]:
    """Return a complete run's final score, if any, and the reason of a failed run's failure."""
    events = read_events(run_dir)
    last = events[-1] if events else None
    if isinstance(last, Ended) and last.reason == "failed":
        return None, last.text.splitlines()[0] if last.text else "it failed"
    final = final_evaluation(events)
    if final is None:
        return None, ""
    return Score(final.mean_reward, final.success_rate, final.episodes), ""


def _settings_of_experiment(experiment: Experiment) -> dict[str, object]:
    """Return the values, by dotted key, in which all experiments of an arm agree."""
    found = {}
    for key, value in experiment.settings.items():
        section, _, name = key.partition(".")
        is_bound = ARM_FILE.binds(key)
        if section in ("member", "learner") and not is_below(name, experiment.config.learner_keys):
            is_bound = ARM_OF_EXPERIMENTS.reason(name) is not None
        if is_bound:
            found[key] = value
    return found


def read_experiment(folder: ExperimentDir) -> ComparedFolder:
    """Read an experiment with its champion.

    Raises:
        UsageError: it has no champion yet.
    """
    run_of(folder.root)
    experiment = load_experiment(folder.config, is_saved=True)
    found = read_totals(folder, experiment)
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    final = champion.final
    last = None
    if found.curve:
        newest = found.curve[-1]
        episodes = experiment.config.fitness.episodes
        last = Score(newest.mean_reward, newest.success_rate, episodes)
    return ComparedFolder(
        name=str(folder.root),
        seed=experiment.config.seed,
        settings=_settings_of_experiment(experiment),
        score=Score(final.mean_reward, final.success_rate, final.episodes),
        last=last,
        **vars(found),
    )


def read_totals(folder: ExperimentDir, experiment: Experiment) -> Totals:
    """Read the totals and the curve of an experiment, complete or not."""
    frame_skip = experiment.run.env.frame_skip
    runs = dict[str, Source]()
    if folder.members.is_dir():
        paths = sorted(folder.members.iterdir())
        runs = {p.name: played_by(RunDir(p), frame_skip) for p in paths if RunDir(p).exists()}
    total_timesteps, total_frames = totals(list(runs.values()))
    records = read_records(folder)
    best = _best(folder, records)
    if experiment.config.rule == "live":
        curve = tuple(live_curve(folder, runs, best))
    else:
        curve = tuple(_curve(records, runs, best))
    return Totals(
        timesteps=sum(run.played_timesteps for run in runs.values()),
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        curve=curve,
    )


# ---------------------------------------------------------------------- the curve


@dataclass(frozen=True)
class _Moment:
    """The moment at which a generation's members, or the run after them, have trained.

    Attributes:
        trained: the runs that have just trained, by folder.
        played: timesteps and frames that all runs had played by then.
    """

    trained: Mapping[str, TrainedMember]
    played: tuple[int, int]


def _curve(
    records: Sequence[GenerationRecord], runs: Mapping[str, Source], name: str
) -> list[Point]:
    """Return the scores of a run and its ancestors, the earliest first.

    Args:
        name: folder of the run.
    """
    parents = parents_of(records)
    points = []
    for moment in reversed(list(_moments(records, runs))):
        if name not in moment.trained:
            parent = parents.get(name, "")
            if parent not in moment.trained:
                continue
            name = parent
        member = moment.trained[name]
        timesteps, frames = moment.played
        if member.fitness is not None:
            points.append(
                Point(
                    timesteps=member.timesteps,
                    total_timesteps=timesteps,
                    total_frames=frames,
                    mean_reward=member.fitness.mean_reward,
                    success_rate=member.fitness.success_rate,
                )
            )
    return points[::-1]


def _best(folder: ExperimentDir, records: Sequence[GenerationRecord]) -> str:
    """Return the folder of the champion or else of the best member; empty without a record."""
    champion = read_record(folder.champion_record, ChampionRecord)
    if champion is not None:
        return champion.folder
    best = (m.folder for r in records[-1:] for m in r.members if m.number == r.ranking[0])
    return next(best, "")


def _moments(records: Sequence[GenerationRecord], runs: Mapping[str, Source]) -> Iterator[_Moment]:
    """Yield moments, the earliest first: two for each generation with an extra run, else one."""
    reached: dict[str, int] = {}
    for record in records:
        later = () if record.extra_run is None else (record.extra_run,)
        for group in (record.members_alone, later):
            reached |= {m.folder: m.timesteps for m in group}
            then = [at(runs[name], t) for name, t in reached.items() if name in runs]
            if group:
                yield _Moment({m.folder: m for m in group}, totals(then))


def evaluation_points(run_dir: RunDir, own: Source) -> tuple[Point, ...]:
    """Return a run's evaluations, without those that a fork has from its parent.

    Args:
        own: the run itself.
    """
    episodes = read_episodes(run_dir)
    rates: list[float | None] = [float(np.mean(row)) for row in episodes.successes]
    if len(rates) != len(episodes.timesteps):
        rates = [None] * len(episodes.timesteps)
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
    rewards = episodes.results[-1]
    is_known = len(episodes.successes) == len(episodes.results)
    rate = float(np.mean(episodes.successes[-1])) if is_known else None
    return Score(float(np.mean(rewards)), rate, len(rewards))


@dataclass(frozen=True)
class _Progress:
    """A run's timesteps over time, by its events; float64 [n] each, both ascending.

    Attributes:
        times_s: seconds since the epoch.
    """

    times_s: NDArray[np.float64]
    timesteps: NDArray[np.float64]

    def when(self, timesteps: int) -> float:
        return float(np.interp(timesteps, self.timesteps, self.times_s))

    def reached(self, time_s: float) -> int:
        return int(np.interp(time_s, self.times_s, self.timesteps))


def live_curve(folder: ExperimentDir, runs: Mapping[str, Source], name: str) -> Iterator[Point]:
    """Yield a run's evaluations, with the timesteps and frames of all runs at that moment.

    The other runs' timesteps at that moment are interpolated linearly between their events.

    Args:
        runs: all runs in their present state, by folder.
        name: folder of the run.
    """
    if name not in runs:
        return
    progress = {each: _progress(folder.member(each)) for each in runs}
    for point in evaluation_points(folder.member(name), runs[name]):
        now = progress[name].when(point.timesteps)
        then = [
            at(run, point.timesteps if each == name else progress[each].reached(now))
            for each, run in runs.items()
        ]
        timesteps, frames = totals(then)
        yield point.model_copy(update={"total_timesteps": timesteps, "total_frames": frames})


def _progress(run_dir: RunDir) -> _Progress:
    events = read_events(run_dir)
    found = [(event.time.timestamp(), float(event.timesteps)) for event in events] or [(0.0, 0.0)]
    times_s, timesteps = np.array(sorted(found)).T
    return _Progress(times_s, np.maximum.accumulate(timesteps))
