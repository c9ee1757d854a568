"""What keeps an experiment from a machine, with the smallest change that helps."""

from collections.abc import Iterator
from dataclasses import replace

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.config.experiments.population_files import Population
from game_rl.experiments.forecast.growth import kept_checkpoints_bytes
from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.experiments.forecast.slots import member_slots_by_memory
from game_rl.experiments.forecast.verdict import is_short_of_memory
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import Fix
from game_rl.preflight.preflight_report import Report
from game_rl.system.units import format_bytes


def findings_of(population: Population, report: ExperimentReport) -> Iterator[Finding]:
    """Yield what does not fit, with the smallest change that fixes it, and the runs' findings."""
    config, machine = population.config, report.machine
    if is_short_of_memory(report) and report.slots > 1:
        fitting = member_slots_by_memory(config.executor, report.member, machine)
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


def _gpu_by_number(report: ExperimentReport) -> Iterator[Finding]:
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


def _disk_fix(population: Population, report: ExperimentReport) -> Fix | None:
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
