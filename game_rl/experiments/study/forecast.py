"""What a study takes: memory of runs that are carried out at once, disk of all of them."""

from dataclasses import dataclass, replace
from typing import Any

from game_rl.config.studies import Study
from game_rl.experiments.forecast import CONTROLLER_BYTES
from game_rl.experiments.slots import comfortable_ram_bytes, slots_by_memory
from game_rl.games.definition import load_game
from game_rl.preflight import calibration
from game_rl.preflight.facts import run_facts
from game_rl.preflight.preflight import report_of
from game_rl.preflight.report import Report
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine


@dataclass(frozen=True)
class StudyReport:
    """Whether a study fits a machine.

    Attributes:
        arms: of each arm one run, alone on the machine with the CPUs that it gets.
        slots: runs at once.
        runs: in all.
    """

    verdict: Verdict
    machine: Machine
    arms: dict[str, Report]
    slots: int
    runs: int

    @property
    def ram_bytes(self) -> int:
        """With the largest arm in every slot."""
        return self.slots * _largest(self.arms) + CONTROLLER_BYTES

    @property
    def disk_bytes(self) -> int:
        """Of all run directories, none of which was deleted."""
        each = sum(report.footprint.disk.bytes for report in self.arms.values())
        return self.runs // len(self.arms) * each

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
            },
            "arms": {name: report.to_json() for name, report in self.arms.items()},
        }


def study_preflight(study: Study, machine: Machine) -> StudyReport:
    """Multiply what one run of each arm takes."""
    config = study.config
    alone = replace(machine, cpus=config.cpus_per_run)
    arms = {
        name: report_of(run, run_facts(run, load_game(run.game), alone, None, None), alone)
        for name, run in study.runs.items()
    }
    runs = len(config.arms) * len(config.seeds)
    slots = config.executor.parallel
    if slots == "auto":
        by_memory = min(
            slots_by_memory(report, machine, beside_all_bytes=CONTROLLER_BYTES)
            for report in arms.values()
        )
        slots = max(1, min(machine.cpus // config.cpus_per_run, by_memory))
    report = StudyReport("fits", machine, arms, min(int(slots), runs), runs)
    return replace(report, verdict=_verdict(report))


def _verdict(report: StudyReport) -> Verdict:
    machine = report.machine
    verdicts = {each.verdict for each in report.arms.values()}
    is_short = (
        report.ram_bytes > machine.ram_available_bytes
        or report.disk_bytes > machine.disk_free_bytes
    )
    if is_short or "does_not_fit" in verdicts:
        return "does_not_fit"
    is_tight = (
        report.ram_bytes > comfortable_ram_bytes(machine)
        or report.disk_bytes > machine.disk_free_bytes - calibration.DISK_MARGIN_BYTES
    )
    return "tight" if is_tight or "tight" in verdicts else "fits"


def _largest(arms: dict[str, Report]) -> int:
    return max(report.footprint.ram.peak.bytes for report in arms.values())
