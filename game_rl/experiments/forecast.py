"""What a population takes: memory of members that train at once, disk by generation, time."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from game_rl.config.executors import ExecutorConfig, LocalExecutorConfig, RayExecutorConfig
from game_rl.config.experiments import Population
from game_rl.config.population import KeepGenerationsConfig, PopulationConfig
from game_rl.experiments.slots import comfortable_ram_bytes, slots_by_memory
from game_rl.games.definition import Game
from game_rl.preflight import calibration
from game_rl.preflight.changes import Fix
from game_rl.preflight.facts import run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.growth import lake_bytes
from game_rl.preflight.measurements import EpisodeLengths, MeasuredLake
from game_rl.preflight.preflight import report_of
from game_rl.preflight.report import Report
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

CONTROLLER_BYTES = 60_000_000  # its resident size at the end of 25 generations of 16 members
RAY_CONTROLLER_BYTES = 120_000_000  # the same with Ray loaded
RAY_NODE_BYTES = 400_000_000  # what Ray runs on a node that is the head, too
RAY_WORKER_BYTES = 80_000_000
_FILES_A_STRETCH_BYTES = 4_000  # result, output and lines of the record and the account
_COPY_START_S = 5.0  # torch is loaded once to make a generation's copies


@dataclass(frozen=True)
class GenerationRow:
    """The experiment's folder after one generation; a file with several names counts once.

    Attributes:
        transitions: of all members, copied over or not; of the last, of who trains on, too.
        lake: None: nobody measured how the game compresses.
    """

    generation: int
    transitions: int
    checkpoints: int
    lake: int | None
    logs: int

    @property
    def total(self) -> int:
        return self.checkpoints + (self.lake or 0) + self.logs


@dataclass(frozen=True)
class PopulationReport:
    """Whether a population fits a machine.

    Attributes:
        member: of one member, alone on the machine with the CPUs that it gets.
        slots: members that train at once.
        growth: after each generation.
        momentary_bytes: beside the last row, while members save.
        wall_s: of all generations; None where nobody measured the machine.
        gpus_per_member: that it asks a cluster for.
        kind: of the experiment.
        learner: of a mixture's, which trains while no member does; `wall_s` is without it.
        following_bytes: of RAM, with which the learner of a live mixture reads the Lake; it
            trains beside the members. None: the mixture is not live.
    """

    verdict: Verdict
    machine: Machine
    member: Report
    slots: int
    growth: tuple[GenerationRow, ...]
    momentary_bytes: int
    findings: tuple[Finding, ...]
    executor: ExecutorConfig
    wall_s: float | None = None
    gpus_per_member: float = 0.0
    kind: str = "population"
    learner: Report | None = None
    following_bytes: int | None = None

    @property
    def ram_bytes(self) -> int:
        """A learner that is alone counts only where it takes more than all slots."""
        if self.following_bytes is not None and self.learner is not None:
            members = (self.slots - 1) * self.member.footprint.ram.peak.bytes
            learner = self.learner.footprint.ram.peak.bytes + self.following_bytes
            return members + learner + controller_bytes(self.executor)
        task, member = task_bytes(self.executor), self.member.footprint.ram.peak.bytes
        alone = self.largest_run_bytes + task
        return max(self.slots * (member + task), alone) + controller_bytes(self.executor)

    @property
    def largest_run_bytes(self) -> int:
        """Of memory, at its peak."""
        runs = (self.member, self.learner or self.member)
        peaks: list[int] = [run.footprint.ram.peak.bytes for run in runs]
        return max(peaks)

    @property
    def is_of_a_node(self) -> bool:
        """The machine is one of several, all like it, as far as anyone knows."""
        return is_on_nodes(self.executor)

    @property
    def lacks_disk(self) -> bool:
        return self.disk_bytes + self.momentary_bytes > self.machine.disk_free_bytes

    @property
    def vram_bytes(self) -> int:
        vram = self.member.footprint.vram
        members = 0 if vram is None else self.slots * vram.peak.bytes
        if self.following_bytes is None or self.learner is None:
            return members
        others = self.learner.footprint.vram
        each = 0 if vram is None else vram.peak.bytes
        return members - each + (0 if others is None else others.peak.bytes)

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
            "wall_s": self.wall_s,
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
    measured: MeasuredSpeed | None = None,
) -> PopulationReport:
    """Multiply what one member takes.

    Args:
        measured: how fast a member is on `machine`, alone.
    """
    alone = replace(machine, cpus=population.config.cpus_per_member)
    facts = run_facts(population.run, game, alone, probe, lake)
    member = report_of(population.run, facts, alone, probe=probe, measured=measured)
    lakes = [
        lake_bytes(population.run, facts, (g + 1) * population.config.timesteps_per_generation)
        for g in range(population.config.generations)
    ]
    whole_lake = lake_bytes(population.run, facts, population.config.total_timesteps)
    rows = tuple(_rows(population.config, member, lakes))
    rows = (*rows[:-1], _with_train_on(rows[-1], population.config, member, whole_lake))
    slots = slots_of(population.config, member, machine)
    report = PopulationReport(
        verdict="fits",
        machine=machine,
        member=member,
        slots=slots,
        growth=rows,
        momentary_bytes=2 * population.config.members * member.footprint.disk.checkpoint_bytes,
        findings=(),
        wall_s=_wall_s(population.config, member, slots),
        gpus_per_member=gpus_of(population.config.executor, member, machine),
        executor=population.config.executor,
    )
    findings = tuple(_findings(population, report))
    return replace(report, verdict=verdict_of(report), findings=findings)


def slots_of(config: PopulationConfig, member: Report, machine: Machine) -> int:
    """Members that train at once: as the config says, or as many as CPUs and memory allow.

    A node of a cluster never gets more than it has room for.
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
    """Of a cluster that is more than this machine."""
    return isinstance(executor, RayExecutorConfig) and not executor.starts_cluster


def controller_bytes(executor: ExecutorConfig) -> int:
    """What runs beside the members, however many they are."""
    if isinstance(executor, RayExecutorConfig):
        return RAY_CONTROLLER_BYTES + RAY_NODE_BYTES
    return CONTROLLER_BYTES


def task_bytes(executor: ExecutorConfig) -> int:
    """Of what waits for a member's process."""
    return RAY_WORKER_BYTES if isinstance(executor, RayExecutorConfig) else 0


def gpus_of(executor: ExecutorConfig, member: Report, machine: Machine) -> float:
    """That a member asks a cluster for: as the config says, or its share of this machine's GPU."""
    if isinstance(executor, LocalExecutorConfig):
        return 0.0
    if executor.gpus_per_member != "auto":
        return executor.gpus_per_member
    vram = member.footprint.vram
    if vram is None or vram.gpu >= len(machine.gpus):
        return 0.0
    return min(1.0, math.ceil(100 * vram.peak.bytes / machine.gpus[vram.gpu].total_bytes) / 100)


def _rows(
    config: PopulationConfig, member: Report, lakes: list[int | None]
) -> Iterator[GenerationRow]:
    """Checkpoints: of each kept generation one a member. Logs: of a member, those of its updates so
    far; a copy has its parent's, too, and what it was copied over stays.
    """
    disk, training = member.footprint.disk, member.footprint.training
    copies = max(1, int(config.selection.share * config.members))
    logs = 0.0
    for generation in range(1, config.generations + 1):
        updates = -(-generation * config.timesteps_per_generation // training.timesteps_per_update)
        grown = config.members * disk.log_bytes_per_update * training.updates / _stretches(config)
        logs += grown + config.members * _FILES_A_STRETCH_BYTES
        if generation < config.generations:
            logs += copies * (updates * disk.log_bytes_per_update + calibration.RUN_FILES_BYTES)
        lake = lakes[generation - 1]
        kept = kept_generations(config.keep_generations, generation)
        yield GenerationRow(
            generation=generation,
            transitions=generation * config.timesteps_per_generation * config.members,
            checkpoints=kept * config.members * disk.checkpoint_bytes,
            lake=None if lake is None else lake * config.members,
            logs=round(logs),
        )


def _with_train_on(
    row: GenerationRow, config: PopulationConfig, member: Report, lake: int | None
) -> GenerationRow:
    """The last one, with the run of the best member, if that is to train on."""
    if config.train_on is None:
        return row
    disk, updates = member.footprint.disk, member.footprint.training.updates
    logs = updates * disk.log_bytes_per_update + calibration.RUN_FILES_BYTES
    return replace(
        row,
        transitions=row.transitions + config.train_on.timesteps,
        checkpoints=row.checkpoints + disk.checkpoint_bytes,
        lake=None if row.lake is None else row.lake + (lake or 0),
        logs=row.logs + round(logs) + _FILES_A_STRETCH_BYTES,
    )


def _stretches(config: PopulationConfig) -> float:
    """That a member's total is made of; what the best trains on counts as so much of one."""
    return config.total_timesteps / config.timesteps_per_generation


def kept_generations(keep: KeepGenerationsConfig, newest: int) -> int:
    """How many are kept after generation `newest`."""
    return sum(keep.keeps(generation, newest=newest) for generation in range(1, newest + 1))


def _wall_s(config: PopulationConfig, member: Report, slots: int) -> float | None:
    """Members in turns, and in each generation a start of their processes and of the copies'."""
    if member.speed is None:
        return None
    start_s = member.speed.seconds["start"]
    learning_s = (member.speed.wall_s - start_s) / _stretches(config)
    turns = -(-config.members // slots)
    wall_s = config.generations * (turns * (learning_s + start_s) + _COPY_START_S)
    if config.train_on is None:
        return wall_s
    more = config.train_on.timesteps / config.timesteps_per_generation
    return wall_s + more * learning_s + start_s + _COPY_START_S


def verdict_of(report: PopulationReport) -> Verdict:
    machine, needed = report.machine, report.disk_bytes + report.momentary_bytes
    comfortable = comfortable_ram_bytes(machine)
    if _is_short(report):
        return "does_not_fit"
    is_tight = (
        report.ram_bytes > comfortable
        or needed > machine.disk_free_bytes - calibration.DISK_MARGIN_BYTES
        or report.member.verdict == "tight"
    )
    return "tight" if is_tight else "fits"


def _is_short(report: PopulationReport) -> bool:
    return (
        is_short_of_memory(report) or report.lacks_disk or report.member.verdict == "does_not_fit"
    )


def is_short_of_memory(report: PopulationReport) -> bool:
    vram = report.member.footprint.vram
    room = 0 if vram is None else report.machine.gpu_free_bytes(vram.gpu)
    return report.ram_bytes > report.machine.ram_available_bytes or report.vram_bytes > room


def _findings(population: Population, report: PopulationReport) -> Iterator[Finding]:
    """What does not fit, each with the smallest change that mends it; then those of a member."""
    config, machine = population.config, report.machine
    if is_short_of_memory(report) and report.slots > 1:
        fitting = _slots_by_memory(config.executor, report.member, machine)
        fix = Fix("executor.parallel", fitting) if fitting >= 1 else None
        yield Finding(
            "error",
            "members_do_not_fit",
            "executor.parallel",
            f"{report.slots} members at once need {format_bytes(report.ram_bytes)} of memory, and "
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
            _disk_fix(config, report),
        )
    for finding in report.member.findings:
        fix = finding.fix
        yield replace(
            finding,
            key=f"member.{finding.key}",
            fix=None if fix is None else Fix(f"member.{fix.key}", fix.value),
        )


def _gpu_by_number(report: PopulationReport) -> Iterator[Finding]:
    vram = report.member.footprint.vram
    if isinstance(report.executor, RayExecutorConfig) and vram is not None and vram.gpu:
        yield Finding(
            "error",
            "ray_chooses_gpu",
            "member.device",
            f"a member is to use cuda:{vram.gpu}, and Ray shows each member only the GPU that it "
            "gives it",
            Fix("member.device", "cuda"),
        )


def _disk_fix(config: PopulationConfig, report: PopulationReport) -> Fix | None:
    """Fewer kept generations: first those that are kept for good, then the newest."""
    last_row, one = report.growth[-1], report.member.footprint.disk.checkpoint_bytes
    others = last_row.total - last_row.checkpoints + report.momentary_bytes
    room = report.machine.disk_free_bytes - others

    def fits(keep: KeepGenerationsConfig) -> bool:
        return kept_generations(keep, config.generations) * config.members * one <= room

    keep = config.keep_generations
    for every in range((keep.every or config.generations) + 1, config.generations + 1):
        if keep.every is not None and fits(keep.model_copy(update={"every": every})):
            return Fix("keep_generations.every", every)
    for last in range(keep.last - 1, 0, -1):
        if fits(keep.model_copy(update={"last": last})):
            return Fix("keep_generations.last", last)
    return None
