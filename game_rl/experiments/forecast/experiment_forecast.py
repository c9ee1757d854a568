"""The forecast of an experiment, made of its runs' reports, and the smallest machine it fits."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.config.experiments.executor_config import ExecutorConfig, LocalExecutorConfig
from game_rl.config.experiments.experiment import STAGES, Experiment
from game_rl.config.strict_model import with_changed
from game_rl.experiments.forecast.experiment_disk import ExperimentDisk, GenerationRow
from game_rl.experiments.forecast.experiment_findings import explain_experiment, findings_of
from game_rl.experiments.forecast.experiment_footprint import (
    ExperimentFootprint,
    duration,
    is_on_nodes,
    slots_of,
)
from game_rl.games.definition import Game
from game_rl.lake.origin import LakeRows
from game_rl.preflight.disk_plan import lake_text, number_table, render_sizes, smaller_lines
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.findings import CheckResult, Finding
from game_rl.preflight.footprint import Verdict, disk_bytes_verdict, ram_bytes_verdict, worst
from game_rl.preflight.preflight import PreflightReport, report_of
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
from game_rl.preflight.rendering import (
    VERDICTS,
    disk_line,
    finding_text,
    of_available,
    verdict_line,
)
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes, format_duration


@dataclass(frozen=True)
class ExperimentReport(ExperimentFootprint):
    """The Forecast of an experiment: whether it fits a machine, and what to change."""

    @cached_property
    def verdict(self) -> Verdict:
        disk = self.disk
        runs = (self.member, self.learner)
        return worst(
            [
                "does_not_fit" if self.lacks_vram else "fits",
                ram_bytes_verdict(self.ram_bytes, self.machine),
                disk_bytes_verdict(disk.minimum_bytes, disk.recommended_bytes, self.machine),
                *(run.verdict for run in runs if run is not None),
            ]
        )

    @cached_property
    def checks(self) -> tuple[CheckResult, ...]:
        return explain_experiment(self)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What does not fit, with the smallest change that fixes it, and the runs' findings."""
        return tuple(findings_of(self, self.checks))

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "slots": self.slots,
            "ram": {
                "predicted_peak_bytes": self.ram_bytes,
                "limit_bytes": self.machine.ram_available_bytes,
            },
            "vram": {"predicted_peak_bytes": self.vram_bytes},
            "disk": {
                "predicted_total_bytes": self.disk_bytes,
                "momentary_bytes": self.momentary_bytes,
                "free_bytes": self.machine.disk_free_bytes,
                "plan": self.plan.to_json(),
            },
            "growth": [asdict(row) | {"total": row.total} for row in self.growth],
            "wall_s": None if self.duration is None else self.duration.wall_s,
            "findings": [asdict(finding) for finding in self.findings],
            "member": self.member.to_json(),
            **({} if self.learner is None else {"learner": self.learner.to_json()}),
        }

    def summary(self) -> RenderableType:
        memory = of_available("RAM", self.ram_bytes, self.machine.ram_available_bytes)
        vram = ""
        if self.vram_bytes and self.member.footprint.vram is not None:
            free = self.machine.gpu_free_bytes(self.member.footprint.vram.gpu)
            vram = f"; {of_available('VRAM', self.vram_bytes, free)}"
        return Group(
            verdict_line(self.verdict, self.machine).append(f"; {self._at_once}{self._took}"),
            Text(f"memory  {memory}{vram}"),
            disk_line(self.plan, self.machine),
            *(finding_text(each) for each in self.findings if each.severity != "info"),
        )

    def table(self) -> RenderableType:
        return Group(
            self._headline(),
            self._growth(),
            render_sizes(self.plan),
            *map(Text, smaller_lines(self.plan, self.machine.disk_free_bytes)),
            *map(finding_text, self.findings),
        )

    def _headline(self) -> Text:
        words, style = VERDICTS[self.verdict]
        machine = self.machine
        member = self.member.footprint
        vram = ""
        if self.vram_bytes and member.vram is not None:
            free = machine.gpu_free_bytes(member.vram.gpu)
            vram = f"; VRAM {format_bytes(self.vram_bytes)} of {format_bytes(free)}"
        took = self._took
        learner = ""
        if self.learner is not None:
            learner = f", {format_bytes(self.learner.footprint.ram.peak.bytes)} the learner"
            learner += "" if self.is_live else ", alone"
        return Text.assemble(
            (words, style),
            f"  {self._at_once}: RAM {format_bytes(self.ram_bytes)} of "
            f"{format_bytes(machine.ram_available_bytes)} ({format_bytes(member.ram.peak.bytes)} a "
            f"member{learner}){vram}; disk {format_bytes(self.disk_bytes)} of "
            f"{format_bytes(machine.disk_free_bytes)}, {format_bytes(self.momentary_bytes)} more "
            f"while members save{took}",
        )

    @property
    def _at_once(self) -> str:
        at_once = "1 member at once" if self.slots == 1 else f"{self.slots} members at once"
        if self.is_live:
            at_once = f"{self.slots} members and the learner at once"
        return at_once + (" on a node like this machine" if self.is_of_a_node else "")

    @property
    def _took(self) -> str:
        if self.duration is None:
            return ""
        took = self.duration
        of_learner = ""
        if self.learner is not None:
            of_learner = f" ({format_duration(took.learner_s)} the learner)"
        where = " on one" if self.is_of_a_node else ""
        return f"; about {format_duration(took.wall_s)}{where}{of_learner}"

    def _growth(self) -> Table:
        stage = STAGES[self.config.kind]
        names = (stage, "transitions", "checkpoints", "Lake", "logs", "total", "needed")
        table = number_table(*names, title=f"disk by {stage}")
        needed = {row.at: row.needed for row in self.plan.rows}
        for row in _shown(self.growth):
            table.add_row(
                f"{row.generation}",
                f"{row.transitions:,}",
                format_bytes(row.checkpoints),
                lake_text(row.lake),
                format_bytes(row.logs),
                format_bytes(row.total),
                format_bytes(needed[row.generation]),
            )
        return table


_MOST_ROWS = 6


def _shown(rows: tuple[GenerationRow, ...]) -> list[GenerationRow]:
    """Return the first row, the last one and evenly spaced others: of 25 1, 5, 10, 15, 20, 25."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    step = -(-len(rows) // (_MOST_ROWS - 1))
    numbers = {1, len(rows), *range(step, len(rows), step)}
    return [row for row in rows if row.generation in numbers]


def experiment_preflight(
    experiment: Experiment,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: ExperimentSpeed | None = None,
    superseded_bytes: int = 0,
) -> ExperimentReport:
    """Predict what an experiment needs, from reports on one member and on the learner.

    Args:
        measured: measured speeds of members and learner on `machine`.
        superseded_bytes: what an experiment that exists has set aside and keeps.
    """
    config = experiment.config
    alone = replace(machine, cpus=config.cpus_per_member)
    facts = run_facts(experiment.run, game, alone, probe, lake)
    of_member = None if measured is None else measured.member
    member = report_of(experiment.run, facts, alone, probe=probe, measured=of_member)
    learner = _learner_report(experiment, game, alone, probe, measured)
    slots = slots_of(config, member, machine)
    episode_timesteps = facts.episode_timesteps if probe is None else probe.mean
    return ExperimentReport(
        config=config,
        machine=machine,
        member=member,
        slots=slots,
        disk=ExperimentDisk(experiment, facts, member, learner, slots, superseded_bytes),
        duration=duration(experiment, member, learner, measured, slots, episode_timesteps),
        gpus_per_member=_gpus_of(config.executor, member, machine),
        learner=learner,
    )


def _gpus_of(executor: ExecutorConfig, member: PreflightReport, machine: Machine) -> float:
    """Return the GPUs that a member requests from a cluster.

    It is the config's number or, if that is "auto", the member's share of this machine's GPU.
    """
    if isinstance(executor, LocalExecutorConfig):
        return 0.0
    if executor.gpus_per_member != "auto":
        return executor.gpus_per_member
    vram = member.footprint.vram
    if vram is None or vram.gpu >= len(machine.gpus):
        return 0.0
    return min(1.0, math.ceil(100 * vram.peak.bytes / machine.gpus[vram.gpu].total_bytes) / 100)


_ROWS_OF_A_BLOCK = 62  # a block has at most 64 frames, some of which belong to its first stack


def _learner_report(
    experiment: Experiment,
    game: Game,
    machine: Machine,
    probe: EpisodeLengths | None,
    measured: ExperimentSpeed | None,
) -> PreflightReport | None:
    """Return the report of the learner's last run, which reads the largest Lake.

    None without a learner.
    """
    if experiment.learner is None:
        return None
    config = experiment.config
    transitions = config.members * config.total_timesteps
    begun = config.members * config.generations * experiment.run.env.n_envs
    # each emulator begins a new block in each generation
    rows = LakeRows(transitions=transitions, blocks=-(-transitions // _ROWS_OF_A_BLOCK) + begun)
    run = experiment.learner
    without = run.model_copy(
        update={"algorithm": run.algorithm.model_copy(update={"learn_from": None})}
    )
    facts = replace(run_facts(without, game, machine, probe, None), learned_lakes=rows)
    taught = run
    if config.is_taught:  # it does not matter here by which run
        teacher = {"run": str(run.run_dir), "keep_if_better": False}
        taught = with_changed(run, {("algorithm", "teacher"): teacher})
    speed = None if measured is None else measured.learner
    return report_of(taught, facts, machine, probe=probe, measured=speed)


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

    @cached_property
    def _reports(self) -> dict[int, ExperimentReport]:
        return {}

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
        if cpus not in self._reports:
            plenty = with_plenty(self.machine, cpus=cpus, n_gpus=self._n_gpus)
            self._reports[cpus] = self._report(plenty)
        return self._reports[cpus]

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
