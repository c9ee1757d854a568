"""The smallest machine that an experiment fits, and what further cores gain."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from game_rl.config.experiments.experiment import Experiment
from game_rl.experiments.forecast.experiment_footprint import is_on_nodes
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport, experiment_preflight
from game_rl.games.definition import Game
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.recommendation import (
    CORES,
    CoreRow,
    Recommendation,
    first_in_time,
    gpus_needed,
    smallest_sizes,
    useful_rows,
    with_plenty,
)
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed
from game_rl.system.machine import Machine


@dataclass(frozen=True)
class ExperimentNeeds:
    """An experiment on machines of other sizes than the one that it was measured on.

    With more cores, more members train at once, up to all of them, each as fast as where it was
    measured. Where members have more threads than there are cores, they are as much slower.

    Attributes:
        machine: machine with the processor and GPU that are meant; where `measured` was measured.
        measured: None: the speed was not measured.
    """

    experiment: Experiment
    game: Game
    machine: Machine
    probe: EpisodeLengths | None = None
    lake: MeasuredLake | None = None
    measured: ExperimentSpeed | None = None

    def recommendation(self, hours: float | None = None) -> Recommendation:
        """Return the smallest machine whose cores no two threads share, and what others gain.

        Args:
            hours: time in which the experiment should end.
        """
        apart = tuple(self._without_sharing())
        run = self.experiment.run
        cores = {cpus for cpus in apart if cpus // self.experiment.config.cpus_per_member in CORES}
        measured = set() if self.measured is None else {self.machine.cpus}
        return Recommendation(
            cpus=apart[0],
            n_gpus=self._n_gpus,
            sizes=smallest_sizes(self.machine, self._fits, cpus=apart[0], n_gpus=self._n_gpus),
            rows=useful_rows({apart[0], *cores, apart[-1], *measured}, self._row),
            hours=hours,
            cpus_in_time=first_in_time(hours, apart, self._row),
            is_experiment=True,
            is_of_a_node=is_on_nodes(self.experiment.config.executor),
            lake_is_unknown=run.lake is not None and self.lake is None,
        )

    def _without_sharing(self) -> Iterator[int]:
        """Yield the numbers of cores that all have a thread of their own; the last has all runs."""
        config = self.experiment.config
        for runs in range(1, config.members + 2):
            cpus = runs * config.cpus_per_member
            if self._on(cpus).runs_at_once == runs:
                yield cpus

    def _on(self, cpus: int) -> ExperimentReport:
        """Return the report on a machine with so many cores and plenty of everything else."""
        return self._report(with_plenty(self.machine, cpus=cpus, n_gpus=self._n_gpus))

    def _report(self, machine: Machine) -> ExperimentReport:
        report = self._at_speed(machine, self.measured)
        if self.measured is None:
            return report
        here = self._at_speed(self.machine, None)
        slower = self._threads_a_core(report) / self._threads_a_core(here)
        learner = self.measured.learner
        if report.is_live and learner is not None:
            learner = _slower(learner, slower)
        scaled = ExperimentSpeed(_slower(self.measured.member, slower), learner)
        return self._at_speed(machine, scaled)

    def _at_speed(self, machine: Machine, measured: ExperimentSpeed | None) -> ExperimentReport:
        return experiment_preflight(
            self.experiment, self.game, machine, probe=self.probe, lake=self.lake, measured=measured
        )

    def _threads_a_core(self, report: ExperimentReport) -> float:
        threads = report.runs_at_once * report.config.cpus_per_member
        return max(1.0, threads / report.machine.cpus)

    def _fits(self, machine: Machine) -> bool:
        """Whether all members fit that a machine with so many cores trains at once."""
        report = self._at_speed(machine, None)
        return report.verdict == "fits" and report.slots == self._on(machine.cpus).slots

    @property
    def _n_gpus(self) -> int:
        alone = replace(self.machine, cpus=self.experiment.config.cpus_per_member)
        member = self.experiment.run
        return gpus_needed(member, run_facts(member, self.game, alone, self.probe, self.lake))

    def _row(self, cpus: int) -> CoreRow:
        report = self._on(cpus)
        turns = -(-report.config.members // report.slots)
        faster = 1 / turns / self._threads_a_core(report)
        sizes = smallest_sizes(self.machine, self._fits, cpus=cpus, n_gpus=self._n_gpus)
        return CoreRow(
            cpus,
            sizes.ram_bytes,
            report.runs_at_once,
            faster,
            faster,
            None if report.duration is None else report.duration.wall_s,
            is_measured=self.measured is not None and cpus == self.machine.cpus,
        )


def _slower(speed: MeasuredSpeed, factor: float) -> MeasuredSpeed:
    return MeasuredSpeed(
        **{field.name: factor * getattr(speed, field.name) for field in fields(speed)}
    )
