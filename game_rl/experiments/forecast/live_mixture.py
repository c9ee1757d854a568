"""The preflight of a live mixture, whose members and learner all train at once."""

from collections.abc import Iterator
from dataclasses import replace

from game_rl.config.experiments.mixture_files import Mixture
from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.experiments.forecast.verdict import is_short_of_memory, verdict_of
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import Fix
from game_rl.system.units import format_bytes


def live_report(mixture: Mixture, report: ExperimentReport) -> ExperimentReport:
    """Turn a population's report into that of a live mixture.

    Args:
        report: the report of a population with as many slots as the mixture has members.
    """
    live = replace(report, is_live=True)
    if report.duration is not None:
        live = replace(live, duration=replace(report.duration, at_once=True))
    others = [each for each in report.findings if each.code != "members_do_not_fit"]
    return replace(
        live, verdict=verdict_of(live), findings=(*_of_all_at_once(mixture, live), *others)
    )


def _of_all_at_once(mixture: Mixture, live: ExperimentReport) -> Iterator[Finding]:
    members, machine = mixture.config.members, live.machine
    if is_short_of_memory(live):
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
    wanted = (members + 1) * mixture.config.cpus_per_member
    if wanted > machine.cpus:
        yield Finding(
            "warning",
            "members_share_cpus",
            "members",
            f"{members} members and the learner have {wanted} threads at work on {machine.cpus} "
            "CPUs: each is slower than alone, and what the members play reaches the learner later",
            None,
        )
