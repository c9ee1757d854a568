"""Whether an experiment fits a machine, from its report."""

from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.experiments.forecast.slots import comfortable_ram_bytes
from game_rl.preflight import calibration
from game_rl.preflight.footprint import Verdict


def verdict_of(report: ExperimentReport) -> Verdict:
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


def _verdicts(report: ExperimentReport) -> list[Verdict]:
    """Return the verdicts on a member and on the learner, each alone."""
    return [report.member.verdict, *([] if report.learner is None else [report.learner.verdict])]


def _is_short(report: ExperimentReport) -> bool:
    return is_short_of_memory(report) or report.lacks_disk or "does_not_fit" in _verdicts(report)


def is_short_of_memory(report: ExperimentReport) -> bool:
    vram = report.member.footprint.vram
    room = 0 if vram is None else report.machine.gpu_free_bytes(vram.gpu)
    return report.ram_bytes > report.machine.ram_available_bytes or report.vram_bytes > room
