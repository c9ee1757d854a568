"""The forecast of a study: whether it fits, and how long it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from game_rl.config.experiments.study_config import ExperimentArm, Study, StudyArm
from game_rl.experiments.forecast.experiment_footprint import (
    CONTROLLER_BYTES,
    LOADING_BYTES,
    slots_by_memory,
)
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport, experiment_preflight
from game_rl.games.definition import load_game
from game_rl.preflight.calibration import DISK_MARGIN_BYTES
from game_rl.preflight.facts import MeasuredLake, run_facts
from game_rl.preflight.findings import CheckResult, Finding
from game_rl.preflight.footprint import Verdict, disk_bytes_verdict, ram_bytes_verdict, worst
from game_rl.preflight.preflight import PreflightReport, report_of
from game_rl.preflight.rendering import VERDICTS, unwrapped
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes


@dataclass(frozen=True)
class ArmReport:
    """Resources that one seed of an arm needs, alone on the machine with the CPUs that it gets.

    Attributes:
        at_work: reports on its runs, of which one works at a time.
        beside_bytes: RAM of its own controller; 0 if it is a single run.
        has_unmeasured_lake: whether it writes a Lake whose size was not measured, so that
            `disk_bytes` does not include it.
    """

    report: PreflightReport | ExperimentReport
    at_work: tuple[PreflightReport, ...]
    disk_bytes: int
    beside_bytes: int = 0
    has_unmeasured_lake: bool = False

    @property
    def ram_bytes(self) -> int:
        return max(each.footprint.ram.peak.bytes for each in self.at_work) + self.beside_bytes

    def slots(self, machine: Machine) -> int:
        """Return how many of them fit comfortably in memory at once."""
        return min(
            slots_by_memory(
                each,
                machine,
                beside_all_bytes=CONTROLLER_BYTES,
                beside_each_bytes=self.beside_bytes,
            )
            for each in self.at_work
        )


@dataclass(frozen=True)
class StudyReport:
    """The Forecast of a study: whether it fits a machine. Its arms have the findings and checks.

    Attributes:
        slots: runs that train at once.
        runs: number of all runs.
    """

    machine: Machine
    arms: dict[str, ArmReport]
    slots: int
    runs: int
    findings: tuple[Finding, ...] = ()
    checks: tuple[CheckResult, ...] = ()

    @cached_property
    def verdict(self) -> Verdict:
        with_margin = self.disk_bytes + DISK_MARGIN_BYTES
        return worst(
            [
                ram_bytes_verdict(self.ram_bytes, self.machine),
                disk_bytes_verdict(self.disk_bytes, with_margin, self.machine),
                *(arm.report.verdict for arm in self.arms.values()),
            ]
        )

    @property
    def ram_bytes(self) -> int:
        """Memory with the largest arm in every slot."""
        largest = max(arm.ram_bytes for arm in self.arms.values())
        return self.slots * largest + CONTROLLER_BYTES

    @property
    def disk_bytes(self) -> int:
        """Disk space of all run directories, if none of them is deleted."""
        each = sum(arm.disk_bytes for arm in self.arms.values())
        return self.runs // len(self.arms) * each

    @property
    def unmeasured_lakes(self) -> tuple[str, ...]:
        """Arms whose Lakes `disk_bytes` does not count."""
        return tuple(name for name, arm in self.arms.items() if arm.has_unmeasured_lake)

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "slots": self.slots,
            "runs": self.runs,
            "ram": {
                "predicted_peak_bytes": self.ram_bytes,
                "limit_bytes": self.machine.ram_available_bytes,
            },
            "disk": {
                "predicted_total_bytes": self.disk_bytes,
                "free_bytes": self.machine.disk_free_bytes,
                "unmeasured_lakes": self.unmeasured_lakes,
            },
            "arms": {name: arm.report.to_json() for name, arm in self.arms.items()},
        }

    def table(self) -> RenderableType:
        machine = self.machine
        lines = Text()
        lines.append(*VERDICTS[self.verdict]).append(
            f"  {self.runs} runs, {self.slots} at once: "
            f"RAM {format_bytes(self.ram_bytes)} of {format_bytes(machine.ram_available_bytes)}; "
            f"disk {format_bytes(self.disk_bytes)} of {format_bytes(machine.disk_free_bytes)}"
        )
        if self.unmeasured_lakes:
            names = ", ".join(self.unmeasured_lakes)
            lines.append(f"\nwithout the Lakes of {names}, not measured yet: ")
            lines.append("preflight --probe adds them")
        return unwrapped(lines)

    summary = table


def study_preflight(
    study: Study, machine: Machine, *, lakes: Mapping[str, MeasuredLake] | None = None
) -> StudyReport:
    """Predict what a study needs, from reports on one seed of each arm.

    Args:
        lakes: measured compression of the game in a Lake, by the name of an arm that writes one.
    """
    config = study.config
    alone = replace(machine, cpus=config.cpus_per_run)
    measured = lakes or {}
    arms = {name: _arm_report(arm, alone, measured.get(name)) for name, arm in study.arms.items()}
    runs = len(config.arms) * len(config.seeds)
    slots = config.executor.parallel
    if slots == "auto":
        by_memory = min(arm.slots(machine) for arm in arms.values())
        slots = max(1, min(machine.cpus // config.cpus_per_run, by_memory))
    return StudyReport(machine, arms, min(int(slots), runs), runs)


def _arm_report(arm: StudyArm, alone: Machine, lake: MeasuredLake | None) -> ArmReport:
    is_unknown = arm.players[0].lake is not None and lake is None
    game = load_game(arm.players[0].game)
    if isinstance(arm, ExperimentArm):
        found = experiment_preflight(arm.experiment, game, alone, lake=lake)
        at_work = (found.member,) if found.learner is None else (found.member, found.learner)
        disk_bytes = found.disk_bytes + found.momentary_bytes
        beside = CONTROLLER_BYTES + LOADING_BYTES
        return ArmReport(found, at_work, disk_bytes, beside, is_unknown)
    run = report_of(arm.run, run_facts(arm.run, game, alone, None, lake), alone)
    lake_bytes = run.growth[-1].on_disk if run.growth else 0
    disk_bytes = run.footprint.disk.bytes + (lake_bytes or 0)
    return ArmReport(run, (run,), disk_bytes, has_unmeasured_lake=is_unknown)
