"""Runs and experiments as plots and reports show them, read from their files without torch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import open_run, saved_state
from game_rl.config.experiments.experiment import STAGES, Experiment, load_experiment
from game_rl.config.schema import RunConfig
from game_rl.errors import NoCheckpointError
from game_rl.events import Evaluated, ExperimentEvent
from game_rl.events.event_log import read_events, read_experiment_events
from game_rl.events.run_view import RunClock, RunView, run_clock
from game_rl.experiments.compare.comparison import arm_names, settings_of
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.experiments.records import (
    ChampionRecord,
    ExperimentState,
    GenerationRecord,
    TrainedMember,
    parents_of,
    read_record,
    read_records,
)
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import (
    MeasuredResource,
    SavedForecast,
    read_footprint,
    read_forecast,
)


@dataclass(frozen=True)
class ShownRun(RunView):
    """A run and what its files tell.

    Attributes:
        forecast: content of `preflight.json`; None if there is none that can be read.
        footprint: content of `footprint.json`; empty, likewise.
    """

    run_dir: RunDir
    config: RunConfig
    forecast: SavedForecast | None
    footprint: Mapping[str, MeasuredResource]

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.run_dir.root.absolute().name

    @property
    def shown_evaluations(self) -> list[Evaluated]:
        """The evaluations of the better way to act, and the final one, if any."""
        return [*self.better_evaluations, *filter(None, [self.final])]

    @cached_property
    def clock(self) -> RunClock:
        return run_clock(self.events, self.config.env.frame_skip)

    @cached_property
    def checkpoint_state(self) -> CheckpointState | None:
        """Description of the newest checkpoint that is valid; None if there is none."""
        with suppress(NoCheckpointError):
            if (found := saved_state(self.run_dir)) is not None:
                return found[1]
        return None


def read_run(root: Path) -> ShownRun:
    """Read a run.

    Raises:
        UsageError: there is no run at `root`.
        ConfigError: its config cannot be read.
    """
    run_dir, config = open_run(root)
    return ShownRun(
        events=read_events(run_dir),
        is_training=run_dir.is_locked,
        run_dir=run_dir,
        config=config,
        forecast=read_forecast(run_dir.preflight),
        footprint=read_footprint(run_dir.footprint),
    )


@dataclass(frozen=True)
class RunGroup:
    """Runs of one colour: seeds of one config, or the members of an experiment.

    Attributes:
        of: what the runs are, for the legend.
    """

    name: str
    runs: tuple[ShownRun, ...]
    of: str = "seeds"

    @property
    def label(self) -> str:
        count = len(self.runs)
        return self.name if count == 1 else f"{self.name} ({count} {self.of})"


def grouped_runs(runs: Sequence[ShownRun]) -> list[RunGroup]:
    """Group runs by their configs, in the order in which they are named."""
    groups: dict[str, list[ShownRun]] = {}
    for run in runs:
        settings = json.dumps(settings_of(run.config), sort_keys=True)
        groups.setdefault(settings, []).append(run)
    names = arm_names([[run.name for run in group] for group in groups.values()], taken=set())
    return [
        RunGroup(group[0].name if len(group) == 1 else name, tuple(group))
        for name, group in zip(names, groups.values(), strict=True)
    ]


@dataclass(frozen=True)
class ShownExperiment:
    """An experiment and what its files tell.

    Attributes:
        records: of the generations that are complete.
        members: the runs of the present members, in the order of their numbers.
        learner: the newest run of the learner, or of the member that trains on; None without one.
    """

    folder: ExperimentDir
    experiment: Experiment
    records: tuple[GenerationRecord, ...]
    champion: ChampionRecord | None
    events: tuple[ExperimentEvent, ...]
    members: tuple[ShownRun, ...]
    learner: ShownRun | None

    @property
    def name(self) -> str:
        return self.folder.root.absolute().name

    @property
    def stage(self) -> str:
        """Word for one round: generation, or round of a mixture."""
        return STAGES[self.experiment.config.kind]

    @property
    def groups(self) -> list[RunGroup]:
        found = [RunGroup(f"{self.name}: members", self.members, of="members")]
        if self.learner is not None:
            found.append(RunGroup(f"{self.name}: learner", (self.learner,)))
        return [group for group in found if group.runs]

    @property
    def lineage(self) -> list[tuple[GenerationRecord, TrainedMember]]:
        """The champion, or the best member so far, and its ancestors, one for each generation."""
        parents = parents_of(self.records)
        name = ""
        if self.champion is not None:
            name = self.champion.folder
        elif self.records:
            last = self.records[-1]
            best = (each for each in last.members if each.number == last.ranking[0])
            name = next((member.folder for member in best), "")
        found = []
        for record in reversed(self.records):
            trained = {member.folder: member for member in record.members}
            if name not in trained:
                name = parents.get(name, "")
            if name in trained:
                found.append((record, trained[name]))
        return found[::-1]


def shown_experiment(root: Path) -> ShownExperiment:
    """Read an experiment.

    Raises:
        UsageError: `root` is not the directory of an experiment.
        ConfigError, ExperimentError: its config, or a record, cannot be read.
    """
    folder = find_experiment(root)
    experiment = load_experiment(folder.config, is_saved=True)
    records = read_records(folder)
    state = read_record(folder.state, ExperimentState)
    extra = experiment.config.members  # number of the learner, or of the member that trains on
    members = () if state is None else state.members
    names = [member.folder for member in members if member.number != extra]
    learners = [r.extra_run.folder for r in records if r.extra_run is not None]
    learners += [member.folder for member in members if member.number == extra]

    def existing(names: Sequence[str]) -> Iterator[ShownRun]:
        found = (folder.member(name) for name in names)
        return (read_run(run_dir.root) for run_dir in found if run_dir.exists())

    return ShownExperiment(
        folder=folder,
        experiment=experiment,
        records=tuple(records),
        champion=read_record(folder.champion_record, ChampionRecord),
        events=tuple(read_experiment_events(folder.events)),
        members=tuple(existing(names)),
        learner=next(existing(learners[::-1]), None),
    )
