"""The report of the preflight on an experiment."""

from dataclasses import asdict, dataclass
from typing import Any

from game_rl.config.experiments.executor_config import ExecutorConfig
from game_rl.experiments.forecast.duration import Duration
from game_rl.experiments.forecast.growth import GenerationRow
from game_rl.experiments.forecast.overhead import controller_bytes, is_on_nodes, task_bytes
from game_rl.preflight.calibration import VIEW_BYTES
from game_rl.preflight.findings import Finding
from game_rl.preflight.footprint import Verdict
from game_rl.preflight.preflight_report import Report
from game_rl.system.machine import Machine


@dataclass(frozen=True)
class ExperimentReport:
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
