"""Memory, disk space and time that a population needs."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from game_rl.config.experiments.executors import (
    ExecutorConfig,
    LocalExecutorConfig,
    RayExecutorConfig,
)
from game_rl.config.experiments.population import KeepGenerationsConfig, PopulationConfig
from game_rl.config.experiments.population_files import Population
from game_rl.experiments.forecast.duration import Duration, duration
from game_rl.experiments.forecast.growth import (
    GenerationRow,
    generation_rows,
    kept_checkpoints_bytes,
    momentary_bytes,
)
from game_rl.experiments.forecast.learner import learner_report
from game_rl.experiments.forecast.slots import comfortable_ram_bytes, slots_by_memory
from game_rl.games.definition import Game
from game_rl.preflight import calibration
from game_rl.preflight.changes import Fix
from game_rl.preflight.facts import run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.learning import VIEW_BYTES
from game_rl.preflight.measurements import EpisodeLengths, MeasuredLake
from game_rl.preflight.preflight import report_of
from game_rl.preflight.report import Report
from game_rl.preflight.speed import ExperimentSpeed
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

CONTROLLER_BYTES = 60_000_000  # its resident size at the end of 25 generations of 16 members
# Memory that local members share, as a process that has loaded torch forks them. 2 and 4 members of
# duel_population took 869 and 1,273 MB with their controller, where the forecast of one alone was
# 525 MB. When each loaded torch itself, 2 took 930 MB.
LOADED_BYTES = 200_000_000
RAY_CONTROLLER_BYTES = 120_000_000  # the controller's size with Ray loaded
RAY_NODE_BYTES = 400_000_000  # Ray's own processes on a node that is also the head
RAY_WORKER_BYTES = 80_000_000
STORAGE_BYTES = 40_000_000  # obstore and its buffers, measured with three files of 30 MB to S3


@dataclass(frozen=True)
class PopulationReport:
    """The preflight's report on an experiment: whether it fits a machine.

    Attributes:
        member: report on one member, alone on the machine with the CPUs that it gets.
        slots: members that train at once.
        growth: the folder's size after each generation.
        momentary_bytes: disk space needed for a while, in addition to the last row of `growth`.
        duration: duration of the experiment; None if the machine was not measured.
        gpus_per_member: GPUs that a member requests from a cluster.
        kind: kind of the experiment.
        learner: report on the learner, or None without one.
        is_live: whether the learner trains at the same time as the members.
    """

    verdict: Verdict
    machine: Machine
    member: Report
    slots: int
    growth: tuple[GenerationRow, ...]
    momentary_bytes: int
    findings: tuple[Finding, ...]
    executor: ExecutorConfig
    duration: Duration | None = None
    gpus_per_member: float = 0.0
    kind: str = "population"
    learner: Report | None = None
    is_live: bool = False

    @property
    def ram_bytes(self) -> int:
        """Memory of the members that train at once or, if it is more, of the learner alone.

        In a live mixture, it is that of all members and the learner.
        """
        if self.is_live:
            assert self.learner is not None
            learner = self.learner.footprint.ram.peak.bytes + task_bytes(self.executor)
            return self.members_ram_bytes + learner + VIEW_BYTES  # a second view, on renewal
        alone = self.largest_run_bytes + task_bytes(self.executor)
        return max(self.members_ram_bytes, alone + controller_bytes(self.executor))

    @property
    def runs_at_once(self) -> int:
        """Runs that train at once: members and, in a live mixture, the learner."""
        return self.slots + self.is_live

    @property
    def members_ram_bytes(self) -> int:
        each = self.member.footprint.ram.peak.bytes + task_bytes(self.executor)
        return self.slots * each + controller_bytes(self.executor)

    @property
    def largest_run_bytes(self) -> int:
        """The larger one of a member's and the learner's peak memory."""
        runs = (self.member, self.learner or self.member)
        peaks: list[int] = [run.footprint.ram.peak.bytes for run in runs]
        return max(peaks)

    @property
    def is_of_a_node(self) -> bool:
        """Whether `machine` stands for each node of a cluster, as all are assumed to be like it."""
        return is_on_nodes(self.executor)

    @property
    def lacks_disk(self) -> bool:
        return self.disk_bytes + self.momentary_bytes > self.machine.disk_free_bytes

    @property
    def vram_bytes(self) -> int:
        vram = self.member.footprint.vram
        members = 0 if vram is None else self.slots * vram.peak.bytes
        others = self.learner.footprint.vram if self.is_live and self.learner is not None else None
        return members + (0 if others is None else others.peak.bytes)

    @property
    def disk_bytes(self) -> int:
        return self.growth[-1].total

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
            },
            "growth": [asdict(row) | {"total": row.total} for row in self.growth],
            "wall_s": None if self.duration is None else self.duration.wall_s,
            "findings": [asdict(finding) for finding in self.findings],
            "member": self.member.to_json(),
            **({} if self.learner is None else {"learner": self.learner.to_json()}),
        }


def population_preflight(
    population: Population,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: ExperimentSpeed | None = None,
) -> PopulationReport:
    """Predict what a population needs, from reports on one member and on the learner.

    Args:
        measured: measured speeds of members and learner on `machine`.
    """
    alone = replace(machine, cpus=population.config.cpus_per_member)
    facts = run_facts(population.run, game, alone, probe, lake)
    of_member = None if measured is None else measured.member
    member = report_of(population.run, facts, alone, probe=probe, measured=of_member)
    learner = learner_report(population, game, alone, probe, measured)
    slots = slots_of(population.config, member, machine)
    episode_timesteps = facts.episode_timesteps if probe is None else probe.mean
    report = PopulationReport(
        verdict="fits",
        machine=machine,
        member=member,
        slots=slots,
        growth=tuple(generation_rows(population, facts, member, learner)),
        momentary_bytes=momentary_bytes(population, member, learner, slots=slots),
        findings=(),
        duration=duration(population, member, learner, measured, slots, episode_timesteps),
        gpus_per_member=gpus_of(population.config.executor, member, machine),
        executor=population.config.executor,
        learner=learner,
    )
    findings = tuple(_findings(population, report))
    return replace(report, verdict=verdict_of(report), findings=findings)


def slots_of(config: PopulationConfig, member: Report, machine: Machine) -> int:
    """Return the number of members that train at once.

    It is the config's or, if that is "auto", as many as CPUs and memory allow. A node of a cluster
    never gets more than it has room for.
    """
    wanted, executor = config.executor.parallel, config.executor
    most = config.members if wanted == "auto" else min(wanted, config.members)
    if wanted != "auto" and not is_on_nodes(executor):
        return most
    by_cpus = machine.cpus // config.cpus_per_member
    return max(1, min(most, by_cpus, _slots_by_memory(executor, member, machine)))


def _slots_by_memory(executor: ExecutorConfig, member: Report, machine: Machine) -> int:
    return slots_by_memory(
        member,
        machine,
        beside_all_bytes=controller_bytes(executor),
        beside_each_bytes=task_bytes(executor),
    )


def is_on_nodes(executor: ExecutorConfig) -> bool:
    """Whether members train on the nodes of an existing cluster instead of on this machine."""
    return isinstance(executor, RayExecutorConfig) and not executor.starts_cluster


def controller_bytes(executor: ExecutorConfig) -> int:
    """Return the memory of everything that runs once, whatever the number of members."""
    if isinstance(executor, RayExecutorConfig):
        return RAY_CONTROLLER_BYTES + RAY_NODE_BYTES + (STORAGE_BYTES if executor.storage else 0)
    return CONTROLLER_BYTES + LOADED_BYTES


def task_bytes(executor: ExecutorConfig) -> int:
    """Return the memory that each member takes in addition to a run of its own.

    It is that of Ray's worker; on the local executor it is negative, as members share what they
    have loaded.
    """
    if isinstance(executor, RayExecutorConfig):
        return RAY_WORKER_BYTES + (STORAGE_BYTES if executor.storage else 0)
    return -LOADED_BYTES


def gpus_of(executor: ExecutorConfig, member: Report, machine: Machine) -> float:
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


def verdict_of(report: PopulationReport) -> Verdict:
    machine, needed = report.machine, report.disk_bytes + report.momentary_bytes
    comfortable = comfortable_ram_bytes(machine)
    if _is_short(report):
        return "does_not_fit"
    is_tight = (
        report.ram_bytes > comfortable
        or needed > machine.disk_free_bytes - calibration.DISK_MARGIN_BYTES
        or "tight" in _verdicts(report)
    )
    return "tight" if is_tight else "fits"


def _verdicts(report: PopulationReport) -> list[Verdict]:
    """Return the verdicts on a member and on the learner, each alone."""
    return [report.member.verdict, *([] if report.learner is None else [report.learner.verdict])]


def _is_short(report: PopulationReport) -> bool:
    return is_short_of_memory(report) or report.lacks_disk or "does_not_fit" in _verdicts(report)


def is_short_of_memory(report: PopulationReport) -> bool:
    vram = report.member.footprint.vram
    room = 0 if vram is None else report.machine.gpu_free_bytes(vram.gpu)
    return report.ram_bytes > report.machine.ram_available_bytes or report.vram_bytes > room


def _findings(population: Population, report: PopulationReport) -> Iterator[Finding]:
    """Yield what does not fit, with the smallest change that fixes it, and the runs' findings."""
    config, machine = population.config, report.machine
    if is_short_of_memory(report) and report.slots > 1:
        fitting = _slots_by_memory(config.executor, report.member, machine)
        fix = Fix("executor.parallel", fitting) if fitting >= 1 else None
        yield Finding(
            "error",
            "members_do_not_fit",
            "executor.parallel",
            f"{report.slots} members at once need {format_bytes(report.members_ram_bytes)} of "
            f"memory, and "
            f"{format_bytes(machine.ram_available_bytes)} are free",
            fix,
        )
    yield from _gpu_by_number(report)
    needed = report.disk_bytes + report.momentary_bytes
    if report.lacks_disk:
        yield Finding(
            "error",
            "generations_do_not_fit",
            "keep_generations",
            f"the population needs {format_bytes(needed)} of disk, and "
            f"{format_bytes(machine.disk_free_bytes)} are free",
            _disk_fix(population, report),
        )
    yield from _of_run("member", report.member)
    if report.learner is not None:
        yield from _of_run("learner", report.learner)


def _of_run(section: str, report: Report) -> Iterator[Finding]:
    """Yield the findings of a run, with keys of the experiment's file."""
    for finding in report.findings:
        fix = finding.fix
        yield replace(
            finding,
            key=f"{section}.{finding.key}",
            fix=None if fix is None else Fix(f"{section}.{fix.key}", fix.value),
        )


def _gpu_by_number(report: PopulationReport) -> Iterator[Finding]:
    vram = report.member.footprint.vram
    if isinstance(report.executor, RayExecutorConfig) and vram is not None and vram.gpu:
        yield Finding(
            "error",
            "ray_chooses_gpu",
            "member.device",
            f"the config has members use cuda:{vram.gpu}, but Ray shows each member only the GPU "
            "that it assigns to it",
            Fix("member.device", "cuda"),
        )


def _disk_fix(population: Population, report: PopulationReport) -> Fix | None:
    """Return the fix that keeps fewer generations: fewer multiples of `every`, else fewer new ones.

    None if no such change is enough.
    """
    last_row, config = report.growth[-1], population.config
    others = last_row.total - last_row.checkpoints + report.momentary_bytes
    room = report.machine.disk_free_bytes - others

    def fits(keep: KeepGenerationsConfig) -> bool:
        return kept_checkpoints_bytes(population, report.member, report.learner, keep) <= room

    keep = config.keep_generations
    for every in range((keep.every or config.generations) + 1, config.generations + 1):
        if keep.every is not None and fits(keep.model_copy(update={"every": every})):
            return Fix("keep_generations.every", every)
    for last in range(keep.last - 1, 0, -1):
        if fits(keep.model_copy(update={"last": last})):
            return Fix("keep_generations.last", last)
    return None
