"""A population or a mixture as plots and reports show it, read without torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from game_rl.config.experiments.experiment import STAGES, Experiment, load_experiment
from game_rl.events import ExperimentEvent, GenerationEnded
from game_rl.events.event_log import read_experiment_events
from game_rl.events.run_view import PlotAxis
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
from game_rl.viewer.panels import Floats, Panel, PlotLine
from game_rl.viewer.run_panels import X_LABELS, RunGroup
from game_rl.viewer.shown_run import ShownRun, read_run

_S_IN_HOUR = 3600.0


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
        name = self._best_folder()
        found = []
        for record in reversed(self.records):
            trained = {member.folder: member for member in record.members}
            if name not in trained:
                name = parents.get(name, "")
            if name in trained:
                found.append((record, trained[name]))
        return found[::-1]

    def _best_folder(self) -> str:
        if self.champion is not None:
            return self.champion.folder
        best = (m for r in self.records[-1:] for m in r.members if m.number == r.ranking[0])
        return next((member.folder for member in best), "")


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
    return ShownExperiment(
        folder=folder,
        experiment=experiment,
        records=tuple(records),
        champion=read_record(folder.champion_record, ChampionRecord),
        events=tuple(read_experiment_events(folder.events)),
        members=tuple(_existing(folder, names)),
        learner=next(iter(_existing(folder, learners[::-1])), None),
    )


def _existing(folder: ExperimentDir, names: Sequence[str]) -> list[ShownRun]:
    found = (folder.member(name) for name in names)
    return [read_run(run_dir.root) for run_dir in found if run_dir.exists()]


def fitness_panel(shown: ShownExperiment, axis: PlotAxis) -> Panel | None:
    """Return the fitness of all members by generation; None before the first one is complete."""
    x_of = _places(shown, axis)
    records = [record for record in shown.records if record.generation in x_of]
    if not records:
        return None
    every = [(record, m) for record in records for m in record.members if m.fitness is not None]
    lineage = [pair for pair in shown.lineage if pair[0].generation in x_of]
    lineage = [(record, m) for record, m in lineage if m.fitness is not None]
    is_success = shown.experiment.config.fitness.metric == "success_rate"
    whose = "the champion" if shown.champion is not None else "the best member"
    ends = _interval(lineage) if is_success else None
    lines = [
        PlotLine(f"{whose} and its ancestors", 0, *_xy(lineage, x_of), interval=ends),
        PlotLine("each member", 1, *_xy(every, x_of), style="dots"),
    ]
    note = f"played at the end of each {shown.stage}; with Wilson's 95 % interval"
    return Panel(
        "fitness",
        "Fitness (success rate)" if is_success else "Fitness (mean reward)",
        "share" if is_success else "number",
        tuple(lines),
        note if is_success else f"played at the end of each {shown.stage}",
        x_label=X_LABELS[axis] if axis == "hours" else f"{X_LABELS[axis]} of a member",
    )


def _places(shown: ShownExperiment, axis: PlotAxis) -> dict[int, float]:
    """Return the place of each generation on the axis."""
    if axis == "hours":
        hours = {}
        total = 0.0
        for event in shown.events:
            if isinstance(event, GenerationEnded):
                total += event.seconds / _S_IN_HOUR
                hours[event.generation] = total
        return hours
    factor = shown.experiment.run.env.frame_skip if axis == "frames" else 1
    return {record.generation: float(record.timesteps * factor) for record in shown.records}


Scored = Sequence[tuple[GenerationRecord, TrainedMember]]


def _xy(pairs: Scored, x_of: dict[int, float]) -> tuple[Floats, Floats]:
    x = [x_of[record.generation] for record, _ in pairs]
    y = [member.fitness.value for _, member in pairs if member.fitness is not None]
    return np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)


def _interval(pairs: Scored) -> tuple[Floats, Floats] | None:
    ends = [m.fitness.success_interval for _, m in pairs if m.fitness is not None]
    if not ends or any(pair is None for pair in ends):
        return None
    low, high = np.array(ends, dtype=np.float64).T
    return low, high
