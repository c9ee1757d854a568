"""Every check of an experiment and of its runs: what it compares, and what does not fit."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.experiment import STAGES, ExperimentConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.experiments.forecast.experiment_disk import ExperimentDisk
from game_rl.experiments.forecast.experiment_footprint import (
    ExperimentFootprint,
    member_slots_by_memory,
)
from game_rl.preflight.findings import CheckResult, Compared, Finding
from game_rl.preflight.fixes import Fix
from game_rl.system.units import format_bytes, format_duration


def explain_experiment(found: ExperimentFootprint) -> tuple[CheckResult, ...]:
    """Return the checks of all runs together, then those of a member and of the learner.

    A lack of disk that is the Lake's alone is a check of its own.
    """
    results = []
    others = []
    for check in CHECKS_OF_ALL:
        compared = check(found)
        finding = compared.finding
        if finding is not None and finding.code != check.__name__:
            others.append(CheckResult(finding.code, Compared(finding.message, finding)))
            compared = replace(compared, finding=None)
        results.append(CheckResult(check.__name__, compared))
    results += others
    for section, run in (("member", found.member), ("learner", found.learner)):
        if run is not None:
            results += [check.of_section(section) for check in run.checks]
    return tuple(results)


def findings_of(found: ExperimentFootprint, checks: tuple[CheckResult, ...]) -> Iterator[Finding]:
    """Yield what the checks of all runs found, then the runs' findings with keys of the file."""
    of_all = {check.name: check.finding for check in checks}
    for name in _FOUND_IN_ORDER:
        finding = of_all.get(name)
        if finding is not None:
            yield finding
    for section, run in (("member", found.member), ("learner", found.learner)):
        if run is None:
            continue
        for finding in run.findings:
            fix = finding.fix
            if fix is not None:
                fix = Fix(f"{section}.{fix.key}", fix.value)
            yield replace(finding, key=f"{section}.{finding.key}", fix=fix)


def members_do_not_fit(found: ExperimentFootprint) -> Compared:
    config = found.config
    machine = found.machine
    available = format_bytes(machine.ram_available_bytes)
    who = "members and the learner" if found.is_live else "members"
    text = f"{format_bytes(found.ram_bytes)} of {found.slots} {who} at once against "
    text += f"{available} available"
    vram = found.member.footprint.vram
    if vram is not None:
        free = machine.gpu_free_bytes(vram.gpu)
        text += f"; {format_bytes(found.vram_bytes)} of GPU memory against {format_bytes(free)}"
    if not found.lacks_memory or not (found.is_live or found.slots > 1):
        return Compared(text)
    if found.is_live:
        key = "members"
        over = found.ram_bytes - machine.ram_available_bytes
        fitting = config.members - max(1, -(-over // found.member.footprint.ram.peak.bytes))
        fix = Fix(key, fitting) if fitting >= 2 else None
        needed = f"{config.members} members and the learner at once need "
        needed += format_bytes(found.ram_bytes)
    else:
        key = "executor.parallel"
        fitting = member_slots_by_memory(config.executor, found.member, machine)
        fix = Fix(key, fitting) if fitting >= 1 else None
        needed = f"{found.slots} members at once need {format_bytes(found.members_ram_bytes)}"
    message = f"{needed} of memory, and {available} are free"
    return Compared(text, Finding("error", "members_do_not_fit", key, message, fix))


def generations_do_not_fit(found: ExperimentFootprint) -> Compared:
    """Name the Lake if the experiment would fit without it, else the generations that it keeps."""
    plan = found.plan
    text = (
        f"at least {format_bytes(plan.minimum_bytes)}, better "
        f"{format_bytes(plan.recommended_bytes)}, against "
        f"{format_bytes(found.machine.disk_free_bytes)} free"
    )
    if not found.lacks_disk:
        return Compared(text)
    config = found.config
    disk = found.disk
    room = found.machine.disk_room_bytes
    stage = STAGES[config.kind]
    at = disk.full_at(room) or config.generations
    after_s = plan.rows[at - 1].after_s
    after = "" if after_s is None else f", after {format_duration(after_s)}"
    needs = (
        f"the disk is full in {stage} {at:,}{after}: the {config.kind} needs "
        f"{format_bytes(disk.minimum_bytes)} of disk, {format_bytes(room)} are free"
    )
    fix = _fewer_generations(config, disk, room)
    without = replace(disk, counts_lake=False)
    code = "generations_do_not_fit"
    key = _keep_key(config)
    if fix is None and without.minimum_bytes <= room:
        code = "lakes_do_not_fit"
        key = f"{'member.' if found.learner is None else ''}lake.capacity_gb"
        needs += f", and all but the Lake needs {format_bytes(without.minimum_bytes)}"
        # the largest capacity of a Lake, in whole 10^7 bytes, with which all Lakes fit
        for_lakes = room - without.minimum_bytes - (disk.reserve_bytes - without.reserve_bytes)
        hundredths = for_lakes // disk.lake_folders // 10**7
        fix = Fix(key, f"{hundredths / 100:g}") if hundredths >= 1 else None
    return Compared(text, Finding("error", code, key, needs, fix))


def _fewer_generations(config: ExperimentConfig, disk: ExperimentDisk, room: int) -> Fix | None:
    """Return the fix that keeps fewer generations: fewer multiples of `every`, else fewer new ones.

    None if no such change is enough.
    """

    def fits(keep: KeepGenerationsConfig) -> bool:
        return disk.keeping(keep).minimum_bytes <= room

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


def ray_chooses_gpu(found: ExperimentFootprint) -> Compared:
    vram = found.member.footprint.vram
    if not isinstance(found.config.executor, RayExecutorConfig):
        return Compared("the executor is not Ray", applies=False)
    if vram is None:
        return Compared("members use no GPU", applies=False)
    text = f"members use cuda:{vram.gpu}, and Ray shows each its GPU as cuda:0"
    if not vram.gpu:
        return Compared(text)
    finding = Finding(
        "error",
        "ray_chooses_gpu",
        "member.device",
        f"the config has members use cuda:{vram.gpu}, but Ray shows each member only the GPU "
        "that it assigns to it",
        Fix("member.device", "cuda"),
    )
    return Compared(text, finding)


def members_share_cpus(found: ExperimentFootprint) -> Compared:
    if not found.is_live:
        return Compared("members and learner do not train at the same time", applies=False)
    members = found.config.members
    cpus = found.machine.cpus
    threads = found.runs_at_once * found.config.cpus_per_member
    text = f"{threads} threads at work against {cpus} CPUs"
    if threads <= cpus:
        return Compared(text)
    finding = Finding(
        "warning",
        "members_share_cpus",
        "members",
        f"{members} members and the learner have {threads} threads at work on {cpus} "
        "CPUs: each is slower than alone, and what the members play reaches the learner later",
        None,
    )
    return Compared(text, finding)


CHECKS_OF_ALL: tuple[Callable[[ExperimentFootprint], Compared], ...] = (
    members_do_not_fit,
    generations_do_not_fit,
    ray_chooses_gpu,
    members_share_cpus,
)
"""The checks of all runs together, by the code of what they find."""

_FOUND_IN_ORDER = (
    "members_do_not_fit",
    "members_share_cpus",
    "ray_chooses_gpu",
    "generations_do_not_fit",
    "lakes_do_not_fit",
)
