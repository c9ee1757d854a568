"""Every check of an experiment and of its runs, with what it compared."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport
from game_rl.preflight.findings import CheckResult, Compared, Finding
from game_rl.system.units import format_bytes


def explain_experiment(report: ExperimentReport) -> tuple[CheckResult, ...]:
    """Return the checks of all runs together, then those of a member and of the learner."""
    results = list(_of_all_runs(report))
    for section, run in (("member", report.member), ("learner", report.learner)):
        if run is not None:
            results += [check.of_section(section) for check in run.checks]
    return tuple(results)


def _of_all_runs(report: ExperimentReport) -> Iterator[CheckResult]:
    of_runs = {"member", "learner"}
    found: dict[str, Finding] = {
        finding.code: finding
        for finding in report.findings
        if finding.key.partition(".")[0] not in of_runs or finding.code in COMPARISONS_OF_ALL
    }
    for code, compare in COMPARISONS_OF_ALL.items():
        yield CheckResult(code, replace(compare(report), finding=found.pop(code, None)))
    for code, finding in found.items():
        yield CheckResult(code, Compared(finding.message, finding))


def _memory(report: ExperimentReport) -> Compared:
    who = "members and the learner" if report.is_live else "members"
    text = (
        f"{format_bytes(report.ram_bytes)} of {report.slots} {who} at once against "
        f"{format_bytes(report.machine.ram_available_bytes)} available"
    )
    vram = report.member.footprint.vram
    if vram is not None:
        free = report.machine.gpu_free_bytes(vram.gpu)
        text += f"; {format_bytes(report.vram_bytes)} of GPU memory against {format_bytes(free)}"
    return Compared(text)


def _disk(report: ExperimentReport) -> Compared:
    plan = report.plan
    return Compared(
        f"at least {format_bytes(plan.minimum_bytes)}, better "
        f"{format_bytes(plan.recommended_bytes)}, against "
        f"{format_bytes(report.machine.disk_free_bytes)} free"
    )


def _gpu_by_number(report: ExperimentReport) -> Compared:
    vram = report.member.footprint.vram
    if not isinstance(report.config.executor, RayExecutorConfig):
        return Compared("the executor is not Ray", applies=False)
    if vram is None:
        return Compared("members use no GPU", applies=False)
    return Compared(f"members use cuda:{vram.gpu}, and Ray shows each its GPU as cuda:0")


def _cpus(report: ExperimentReport) -> Compared:
    if not report.is_live:
        return Compared("members and learner do not train at the same time", applies=False)
    threads = report.runs_at_once * report.config.cpus_per_member
    return Compared(f"{threads} threads at work against {report.machine.cpus} CPUs")


COMPARISONS_OF_ALL: Mapping[str, Callable[[ExperimentReport], Compared]] = {
    "members_do_not_fit": _memory,
    "generations_do_not_fit": _disk,
    "ray_chooses_gpu": _gpu_by_number,
    "members_share_cpus": _cpus,
}
"""What each check of all runs together compares, by the code of its finding."""
