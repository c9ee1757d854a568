"""The result of a preflight, as JSON for programs; preflight/table.py renders it for people."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from game_rl.preflight.findings import Finding
from game_rl.preflight.footprint import Footprint, GpuFootprint, MemoryFootprint, Part
from game_rl.preflight.growth import GrowthRow
from game_rl.preflight.speed import SpeedForecast
from game_rl.preflight.table import report_table
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

FootprintComparison = dict[str, dict[str, int | float]]


@dataclass(frozen=True)
class Report:
    """Whether a run fits a machine, the resources that it takes, and what to change.

    Attributes:
        speed: None if the machine's speed was not measured.
        growth: empty for a run that keeps no timesteps on disk.
    """

    verdict: Verdict
    machine: Machine
    footprint: Footprint
    findings: tuple[Finding, ...]
    speed: SpeedForecast | None = None
    growth: tuple[GrowthRow, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        The parts of RAM and VRAM are those of the peak phase and sum to the peak. `vram` describes
        the network's GPU, `replay_vram` the replay's if that is another one. `disk.parts` sum to
        the size of the run directory at the run's end, without a Lake. The Lake is in `growth`,
        which is empty for a run that keeps no timesteps on disk. Timesteps, time and disk are upper
        bounds if `may_end_early`.
        """
        disk, training, machine = self.footprint.disk, self.footprint.training, self.machine
        return {
            "verdict": self.verdict,
            "ram": _memory_json(self.footprint.ram, machine.ram_available_bytes),
            "vram": _gpu_json(self.footprint.vram, machine),
            "replay_vram": _gpu_json(self.footprint.replay_vram, machine),
            "disk": {
                "predicted_total_bytes": disk.bytes,
                "free_bytes": machine.disk_free_bytes,
                "parts": _parts_json(disk.parts),
            },
            "training": {
                "timesteps_per_update": training.timesteps_per_update,
                "updates": training.updates,
                "minibatches_per_epoch": training.minibatches_per_epoch,
                "gradient_steps_per_update": training.gradient_steps_per_update,
                "checkpoints": training.checkpoints,
                "evaluations": training.evaluations,
                "timesteps": training.played_timesteps,
                "frames": training.frames,
                "samples_per_timestep": training.samples_per_timestep,
                "offline_gradient_steps": training.offline_gradient_steps,
                "may_end_early": training.may_end_early,
            },
            "speed": _speed_json(self.speed) if self.speed else None,
            "growth": [asdict(row) for row in self.growth],
            "findings": [asdict(finding) for finding in self.findings],
        }


def render_report(report: Report) -> RenderableType:
    """Render the report for people: the verdict, memory, disk, time, and what to change."""
    return report_table(
        report.verdict,
        report.machine,
        report.footprint,
        report.findings,
        report.speed,
        report.growth,
    )


def compare_footprint(
    report: Report, *, ram_peak_bytes: int, disk_bytes: int
) -> FootprintComparison:
    """Compare prediction and measurement, for footprint.json.

    `error` is predicted / measured - 1.
    """
    predicted = report.footprint
    return {
        "ram_peak_bytes": _compare(predicted.ram.peak.bytes, ram_peak_bytes),
        "disk_total_bytes": _compare(predicted.disk.bytes, disk_bytes),
    }


def measured_ram_peak_bytes(footprint: Path) -> int:
    """Return the peak that a footprint.json has; 0 if there is no such file, or it is damaged."""
    try:
        return int(json.loads(footprint.read_bytes())["ram_peak_bytes"]["measured"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0


def footprint_line(footprint: FootprintComparison) -> str:
    """Return one line for the summary of a run."""
    words = []
    for name, key in (("RAM", "ram_peak_bytes"), ("disk", "disk_total_bytes")):
        numbers = footprint[key]
        predicted, measured = int(numbers["predicted"]), int(numbers["measured"])
        words.append(
            f"{name} {format_bytes(measured)} measured, {format_bytes(predicted)} predicted "
            f"({numbers['error']:+.1%})"
        )
    return "; ".join(words)


def _compare(predicted: int, measured: int) -> dict[str, int | float]:
    error = predicted / measured - 1 if measured else 0.0
    return {"predicted": predicted, "measured": measured, "error": round(error, 4)}


def _gpu_json(vram: GpuFootprint | None, machine: Machine) -> dict[str, Any] | None:
    return None if vram is None else _memory_json(vram, machine.gpu_free_bytes(vram.gpu))


def _memory_json(memory: MemoryFootprint, limit_bytes: int) -> dict[str, Any]:
    peak = memory.peak
    return {
        "predicted_peak_bytes": peak.bytes,
        "limit_bytes": limit_bytes,
        "peak_phase": peak.name,
        "parts": _parts_json(peak.parts),
    }


def _parts_json(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [asdict(part) for part in parts]


def _speed_json(speed: SpeedForecast) -> dict[str, Any]:
    """`seconds` sum to `wall_s`."""
    return {
        "timesteps_per_s": speed.timesteps_per_s,
        "wall_s": speed.wall_s,
        "seconds": dict(speed.seconds),
    }
