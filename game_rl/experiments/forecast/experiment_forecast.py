"""The preflight of an experiment, made of its runs' reports: verdict, findings, report."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from game_rl.config.experiments.executor_config import (
    ExecutorConfig,
    LocalExecutorConfig,
    RayExecutorConfig,
)
from game_rl.config.experiments.experiment import STAGES, Experiment, ExperimentConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.config.strict_model import with_changed
from game_rl.experiments.forecast.experiment_disk import ExperimentDisk, GenerationRow
from game_rl.experiments.forecast.experiment_footprint import (
    Duration,
    controller_bytes,
    duration,
    is_on_nodes,
    member_slots_by_memory,
    slots_of,
    task_bytes,
)
from game_rl.games.definition import Game
from game_rl.lake.lake_pool import VIEW_BYTES
from game_rl.lake.origin import LakeRows
from game_rl.preflight.disk_plan import DiskPlan
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import Fix
from game_rl.preflight.footprint import Verdict, ram_bytes_verdict, worst
from game_rl.preflight.preflight import report_of
from game_rl.preflight.preflight_report import PreflightReport
from game_rl.preflight.workload import ExperimentSpeed
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes, format_duration


@dataclass(frozen=True)
class ExperimentReport:
    """The preflight's report on an experiment: whether it fits a machine.

    Attributes:
        member: report on one member, alone on the machine with the CPUs that it gets.
        slots: members that train at once.
        disk: what is on the disk.
        duration: duration of the experiment; None if the machine was not measured.
        gpus_per_member: GPUs that a member requests from a cluster.
        learner: report on the learner, or None without one.
    """

    config: ExperimentConfig
    verdict: Verdict
    machine: Machine
    member: PreflightReport
    slots: int
    disk: ExperimentDisk
    findings: tuple[Finding, ...]
    duration: Duration | None = None
    gpus_per_member: float = 0.0
    learner: PreflightReport | None = None

    @property
    def is_live(self) -> bool:
        """Whether the learner trains at the same time as the members."""
        return self.config.rule == "live"

    @property
    def ram_bytes(self) -> int:
        """Memory of the members that train at once or, if it is more, of the learner alone.

        In a live mixture, it is that of all members and the learner.
        """
        if self.is_live:
            assert self.learner is not None
            learner = self.learner.footprint.ram.peak.bytes + self._task_bytes
            return self.members_ram_bytes + learner + VIEW_BYTES  # a second view, on renewal
        alone = self.largest_run_bytes + self._task_bytes
        return max(self.members_ram_bytes, alone + self._controller_bytes)

    @property
    def runs_at_once(self) -> int:
        """Runs that train at once: members and, in a live mixture, the learner."""
        return self.slots + self.is_live

    @property
    def members_ram_bytes(self) -> int:
        each = self.member.footprint.ram.peak.bytes + self._task_bytes
        return self.slots * each + self._controller_bytes

    @property
    def _task_bytes(self) -> int:
        return task_bytes(self.config.executor, self.machine)

    @property
    def _controller_bytes(self) -> int:
        return controller_bytes(self.config.executor, self.machine)

    @property
    def largest_run_bytes(self) -> int:
        """The larger one of a member's and the learner's peak memory."""
        runs = (self.member, self.learner or self.member)
        peaks: list[int] = [run.footprint.ram.peak.bytes for run in runs]
        return max(peaks)

    @property
    def is_of_a_node(self) -> bool:
        """Whether `machine` stands for each node of a cluster, as all are assumed to be like it."""
        return is_on_nodes(self.config.executor)

    @cached_property
    def plan(self) -> DiskPlan:
        """The plan of the disk."""
        took = self.duration
        generations = self.config.generations
        stage_s = None if took is None else (took.wall_s - took.champion_s) / generations
        return self.disk.plan(self.machine.installation_bytes, stage_s)

    @property
    def growth(self) -> tuple[GenerationRow, ...]:
        """The folder's size after each generation."""
        return self.disk.rows

    @property
    def momentary_bytes(self) -> int:
        """Disk space needed for a while, in addition to the last row of `growth`."""
        return self.disk.momentary_bytes

    @property
    def lacks_disk(self) -> bool:
        return self.plan.minimum_bytes > self.machine.disk_free_bytes

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
                "plan": self.plan.to_json(),
            },
            "growth": [asdict(row) | {"total": row.total} for row in self.growth],
            "wall_s": None if self.duration is None else self.duration.wall_s,
            "findings": [asdict(finding) for finding in self.findings],
            "member": self.member.to_json(),
            **({} if self.learner is None else {"learner": self.learner.to_json()}),
        }


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
    report = ExperimentReport(
        config=config,
        verdict="fits",
        machine=machine,
        member=member,
        slots=slots,
        disk=ExperimentDisk(experiment, facts, member, learner, slots, superseded_bytes),
        findings=(),
        duration=duration(experiment, member, learner, measured, slots, episode_timesteps),
        gpus_per_member=_gpus_of(config.executor, member, machine),
        learner=learner,
    )
    findings = tuple(_findings_of(report))
    return replace(report, verdict=_verdict_of(report), findings=findings)


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
    run = experiment.learner
    without = run.model_copy(
        update={"algorithm": run.algorithm.model_copy(update={"learn_from": None})}
    )
    facts = replace(
        run_facts(without, game, machine, probe, None), learned_lakes=_lake_rows(experiment)
    )
    taught = run
    if experiment.config.is_taught:  # it does not matter here by which run
        teacher = {"run": str(run.run_dir), "keep_if_better": False}
        taught = with_changed(run, {("algorithm", "teacher"): teacher})
    speed = None if measured is None else measured.learner
    return report_of(taught, facts, machine, probe=probe, measured=speed)


def _lake_rows(experiment: Experiment) -> LakeRows:
    """Return the rows of all members; each emulator begins a new block in each generation."""
    config = experiment.config
    n_envs = experiment.run.env.n_envs
    transitions = config.members * config.total_timesteps
    begun = config.members * config.generations * n_envs
    return LakeRows(transitions=transitions, blocks=-(-transitions // _ROWS_OF_A_BLOCK) + begun)


def _verdict_of(report: ExperimentReport) -> Verdict:
    machine = report.machine
    runs = (report.member, report.learner)
    return worst(
        [
            "does_not_fit" if _is_short_of_vram(report) else "fits",
            ram_bytes_verdict(report.ram_bytes, machine),
            report.plan.verdict(machine.disk_free_bytes),
            *(run.verdict for run in runs if run is not None),
        ]
    )


def _is_short_of_vram(report: ExperimentReport) -> bool:
    vram = report.member.footprint.vram
    room = 0 if vram is None else report.machine.gpu_free_bytes(vram.gpu)
    return report.vram_bytes > room


def _is_short_of_memory(report: ExperimentReport) -> bool:
    is_short_of_ram = report.ram_bytes > report.machine.ram_available_bytes
    return is_short_of_ram or _is_short_of_vram(report)


def _findings_of(report: ExperimentReport) -> Iterator[Finding]:
    """Yield what does not fit, with the smallest change that fixes it, and the runs' findings."""
    config = report.config
    machine = report.machine
    if report.is_live:
        yield from _of_all_at_once(report)
    elif _is_short_of_memory(report) and report.slots > 1:
        fitting = member_slots_by_memory(config.executor, report.member, machine)
        fix = Fix("executor.parallel", fitting) if fitting >= 1 else None
        yield Finding(
            "error",
            "members_do_not_fit",
            "executor.parallel",
            f"{report.slots} members at once need {format_bytes(report.members_ram_bytes)} of "
            f"memory, and {format_bytes(machine.ram_available_bytes)} are free",
            fix,
        )
    yield from _gpu_by_number(report)
    if report.lacks_disk:
        yield _lack_of_disk(report)
    yield from _of_run("member", report.member)
    if report.learner is not None:
        yield from _of_run("learner", report.learner)


def _of_run(section: str, report: PreflightReport) -> Iterator[Finding]:
    """Yield the findings of a run, with keys of the experiment's file."""
    for finding in report.findings:
        fix = finding.fix
        yield replace(
            finding,
            key=f"{section}.{finding.key}",
            fix=None if fix is None else Fix(f"{section}.{fix.key}", fix.value),
        )


def _gpu_by_number(report: ExperimentReport) -> Iterator[Finding]:
    vram = report.member.footprint.vram
    if isinstance(report.config.executor, RayExecutorConfig) and vram is not None and vram.gpu:
        yield Finding(
            "error",
            "ray_chooses_gpu",
            "member.device",
            f"the config has members use cuda:{vram.gpu}, but Ray shows each member only the GPU "
            "that it assigns to it",
            Fix("member.device", "cuda"),
        )


def _lack_of_disk(report: ExperimentReport) -> Finding:
    """Name the Lake if the experiment would fit without it, else the generations that it keeps."""
    config = report.config
    disk = report.disk
    room = report.machine.disk_room_bytes
    full_at = disk.full_at(room)
    stage = STAGES[config.kind]
    at = full_at or config.generations
    after_s = report.plan.rows[at - 1].after_s
    after = "" if after_s is None else f", after {format_duration(after_s)}"
    needs = (
        f"the disk is full in {stage} {at:,}{after}: the {config.kind} needs "
        f"{format_bytes(disk.minimum_bytes)} of disk, {format_bytes(room)} are free"
    )
    fix = _disk_fix(report)
    without = replace(disk, counts_lake=False).minimum_bytes
    if fix is None and without <= room:
        return Finding(
            "error",
            "lakes_do_not_fit",
            lake_key := _lake_key(report),
            f"{needs}, and all but the Lake needs {format_bytes(without)}",
            _lake_fix(lake_key, disk, room - without),
        )
    return Finding("error", "generations_do_not_fit", _keep_key(config), needs, fix)


def _lake_key(report: ExperimentReport) -> str:
    return f"{'member.' if report.learner is None else ''}lake.capacity_gb"


def _lake_fix(key: str, disk: ExperimentDisk, room: int) -> Fix | None:
    """Return the largest capacity of a Lake, in whole 10^7 bytes, with which all Lakes fit."""
    reserve = disk.reserve_bytes - replace(disk, counts_lake=False).reserve_bytes
    hundredths = (room - reserve) // disk.lake_folders // 10**7
    return Fix(key, f"{hundredths / 100:g}") if hundredths >= 1 else None


def _disk_fix(report: ExperimentReport) -> Fix | None:
    """Return the fix that keeps fewer generations: fewer multiples of `every`, else fewer new ones.

    None if no such change is enough.
    """
    config = report.config
    room = report.machine.disk_room_bytes

    def fits(keep: KeepGenerationsConfig) -> bool:
        return report.disk.keeping(keep).minimum_bytes <= room

    keep = config.keep_generations
    for every in range((keep.every or config.generations) + 1, config.generations + 1):
        if keep.every is not None and fits(keep.model_copy(update={"every": every})):
            return Fix(f"{_keep_key(config)}.every", every)
    for last in range(keep.last - 1, 0, -1):
        if fits(keep.model_copy(update={"last": last})):
            return Fix(f"{_keep_key(config)}.last", last)
    return None


def _keep_key(config: ExperimentConfig) -> str:
    return f"keep_{STAGES[config.kind]}s"


def _of_all_at_once(live: ExperimentReport) -> Iterator[Finding]:
    members = live.config.members
    machine = live.machine
    if _is_short_of_memory(live):
        over = live.ram_bytes - machine.ram_available_bytes
        fitting = members - max(1, -(-over // live.member.footprint.ram.peak.bytes))
        yield Finding(
            "error",
            "members_do_not_fit",
            "members",
            f"{members} members and the learner at once need {format_bytes(live.ram_bytes)} of "
            f"memory, and {format_bytes(machine.ram_available_bytes)} are free",
            Fix("members", fitting) if fitting >= 2 else None,
        )
    wanted = (members + 1) * live.config.cpus_per_member
    if wanted > machine.cpus:
        yield Finding(
            "warning",
            "members_share_cpus",
            "members",
            f"{members} members and the learner have {wanted} threads at work on {machine.cpus} "
            "CPUs: each is slower than alone, and what the members play reaches the learner later",
            None,
        )
