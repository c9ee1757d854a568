"""The preflight's result: JSON for programs, a table for people, forecast against measurement."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.features.feature import Part
from game_rl.files.saved_forecast import read_footprint
from game_rl.preflight.disk import GrowthRow
from game_rl.preflight.disk_plan import DiskPlan, render_plan
from game_rl.preflight.facts import MeasuredLake
from game_rl.preflight.findings import CheckResult, Finding
from game_rl.preflight.footprint import Footprint, GpuFootprint, MemoryFootprint, Verdict
from game_rl.preflight.workload import SpeedForecast, TrainingArithmetic
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes, format_deviation, format_duration

FootprintComparison = dict[str, dict[str, int | float]]


@dataclass(frozen=True)
class PreflightReport:
    """Whether a run fits a machine, the resources that it takes, and what to change.

    Attributes:
        verdict: `fits`, `tight` or `does_not_fit`.
        machine: CPUs, memory and disk of the machine, in bytes.
        footprint: predicted memory, disk and work of the training, part by part, in bytes.
        findings: what does not fit or is near it, each with the way out.
        plan: disk needed over the timesteps of the run, in bytes.
        speed: timesteps per second and hours; None if the machine's speed was not measured.
        growth: what the timesteps on disk take as they grow; empty for a run that keeps none there.
        checks: every check, with what it compared; those that found something are in `findings`.
    """

    verdict: Verdict
    machine: Machine
    footprint: Footprint
    findings: tuple[Finding, ...]
    plan: DiskPlan
    speed: SpeedForecast | None = None
    growth: tuple[GrowthRow, ...] = ()
    checks: tuple[CheckResult, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        The parts of RAM and VRAM are those of the peak phase and sum to the peak. `vram` describes
        the network's GPU, `replay_vram` the replay's if that is another one. `disk.parts` sum to
        the size of the run directory at the run's end, without a Lake. The Lake is in `disk.plan`
        and in `growth`, which is empty for a run that keeps no timesteps on disk. Timesteps, time
        and disk are upper bounds if `may_end_early`.
        """
        disk = self.footprint.disk
        training = self.footprint.training
        machine = self.machine
        return {
            "verdict": self.verdict,
            "ram": _memory_json(self.footprint.ram, machine.ram_available_bytes),
            "vram": _gpu_json(self.footprint.vram, machine),
            "replay_vram": _gpu_json(self.footprint.replay_vram, machine),
            "disk": {
                "predicted_total_bytes": disk.bytes,
                "free_bytes": machine.disk_free_bytes,
                "parts": [asdict(part) for part in disk.parts],
                "plan": self.plan.to_json(),
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


def render_summary(report: PreflightReport) -> RenderableType:
    """Render what a person needs before a training: verdict, memory, disk, and what is wrong.

    It is the whole report where something is near its limit.
    """
    if report.verdict != "fits":
        return render_report(report)
    return Group(
        verdict_line(report.verdict, report.machine),
        _memory_line(report),
        disk_line(report.plan, report.machine, _at_most(report.footprint.training)),
        *(finding_text(each) for each in report.findings if each.severity != "info"),
    )


def render_report(report: PreflightReport) -> RenderableType:
    """Render the report for people: the verdict, memory, disk, time, and what to change."""
    footprint = report.footprint
    machine = report.machine
    speed = report.speed
    return Group(
        _headline(report.verdict, footprint, machine),
        _resources(report),
        _training(footprint),
        *([_speed(speed, footprint.training)] if speed else ()),
        render_plan(report.plan, free_bytes=machine.disk_free_bytes),
        *([_growth(report.growth)] if report.growth else ()),
        *(finding_text(finding) for finding in report.findings),
    )


def compare_footprint(
    report: PreflightReport, *, ram_peak_bytes: int, disk_bytes: int, vram_reserved_bytes: int = 0
) -> FootprintComparison:
    """Compare prediction and measurement, for footprint.json.

    `error` is predicted / measured - 1.

    Args:
        vram_reserved_bytes: what torch's allocator has reserved at most of the network's GPU; 0 if
            there is none.
    """
    predicted = report.footprint
    compared = {
        "ram_peak_bytes": _compare(predicted.ram.peak.bytes, ram_peak_bytes),
        "disk_total_bytes": _compare(predicted.disk.bytes, disk_bytes),
    }
    if predicted.vram is not None and vram_reserved_bytes:
        reserved = predicted.vram.reserved_bytes
        compared["vram_reserved_bytes"] = _compare(reserved, vram_reserved_bytes)
    return compared


def measured_ram_peak_bytes(footprint: Path) -> int:
    """Return the peak that a footprint.json has; 0 if there is no such file, or it is damaged."""
    found = read_footprint(footprint).get("ram_peak_bytes")
    return 0 if found is None else found.measured or 0


def footprint_line(footprint: FootprintComparison) -> str:
    """Return one line for the summary of a run."""
    words = []
    names = {"ram_peak_bytes": "RAM", "vram_reserved_bytes": "VRAM", "disk_total_bytes": "disk"}
    for key, name in names.items():
        if (numbers := footprint.get(key)) is None:
            continue
        predicted = int(numbers["predicted"])
        measured = int(numbers["measured"])
        words.append(
            f"{name} {format_bytes(measured)} measured, {format_bytes(predicted)} predicted "
            f"({format_deviation(numbers['error'])})"
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
        "parts": [asdict(part) for part in peak.parts],
    }


def _speed_json(speed: SpeedForecast) -> dict[str, Any]:
    """`seconds` sum to `wall_s`."""
    return {
        "timesteps_per_s": speed.timesteps_per_s,
        "wall_s": speed.wall_s,
        "seconds": dict(speed.seconds),
    }


VERDICTS: dict[Verdict, tuple[str, str]] = {
    "fits": ("FITS", "bold green"),
    "tight": ("TIGHT", "bold yellow"),
    "does_not_fit": ("DOES NOT FIT", "bold red"),
}
_SEVERITIES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_BAR_WIDTH = 20
_SMALL_SHARE = 0.02  # parts below this share of the whole are summed up as "other"


def verdict_line(verdict: Verdict, machine: Machine) -> Text:
    """Return the verdict with the machine that it is about."""
    words, style = VERDICTS[verdict]
    sizes = " + ".join(format_bytes(gpu.total_bytes) for gpu in machine.gpus)
    vram = f"{sizes} VRAM" if sizes else "no GPU"
    return Text.assemble(
        (words, style), f"  {machine.cpus} CPUs, {format_bytes(machine.ram_bytes)} RAM, {vram}"
    )


def _memory_line(report: PreflightReport) -> Text:
    footprint = report.footprint
    machine = report.machine
    used = [of_available("RAM", footprint.ram.peak.bytes, machine.ram_available_bytes)]
    for vram in (footprint.vram, footprint.replay_vram):
        if vram is not None:
            free = machine.gpu_free_bytes(vram.gpu)
            used.append(of_available(f"VRAM of cuda:{vram.gpu}", vram.peak.bytes, free))
    return Text(f"memory  {'; '.join(used)}")


def disk_line(plan: DiskPlan, machine: Machine, most: str = "") -> Text:
    """Return what the disk holds at the end.

    Args:
        most: words before the size, such as "at most ".
    """
    return Text(f"disk    {most}{of_available('', plan.total_bytes, machine.disk_free_bytes)}")


def of_available(name: str, size: int, free: int) -> str:
    """Return a size beside what is free: `RAM 453 MiB of 22.7 GiB free (2%)`."""
    return (
        f"{name} {format_bytes(size)} of {format_bytes(free)} free ({_share(size, free)})".strip()
    )


def _share(size: int, limit: int) -> str:
    """Return a share in percent; a small one is not 0."""
    share = size / limit if limit else 1.0
    return "under 1%" if 0 < share < 0.01 else f"{share:.0%}"


def _headline(verdict: Verdict, footprint: Footprint, machine: Machine) -> Text:
    phase = footprint.ram.peak.name
    return verdict_line(verdict, machine).append(f"; memory peaks in the phase {phase!r}")


def _resources(report: PreflightReport) -> Table:
    footprint = report.footprint
    machine = report.machine
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    _add_rows(table, "RAM", footprint.ram.peak.parts, machine.ram_available_bytes)
    if (vram := footprint.vram) is not None:
        _add_rows(table, "VRAM", vram.peak.parts, machine.gpu_free_bytes(vram.gpu))
    if (vram := footprint.replay_vram) is not None:
        name = f"VRAM of cuda:{vram.gpu}"
        limit = machine.gpu_free_bytes(vram.gpu)
        _add_rows(table, name, vram.peak.parts, limit)
    disk = footprint.disk
    most = _at_most(footprint.training)
    _add_rows(table, "disk", report.plan.parts, machine.disk_free_bytes, most)
    table.add_row("", "  while a checkpoint is written", f"+{format_bytes(disk.momentary_bytes)}")
    return table


def _at_most(training: TrainingArithmetic) -> str:
    return "at most " if training.may_end_early else ""


def _add_rows(table: Table, name: str, parts: tuple[Part, ...], limit: int, most: str = "") -> None:
    """Add a row for the sum of the parts, and one for each large part."""
    size = sum(part.bytes for part in parts)
    share = size / limit if limit else 1.0
    style = "red" if share > 1 else "yellow" if share > 0.9 else "green"
    filled = min(_BAR_WIDTH, max(1 if size else 0, round(share * _BAR_WIDTH)))
    bar = Text.assemble(("█" * filled, style), ("░" * (_BAR_WIDTH - filled), "dim"))
    table.add_row(
        Text(name, style="bold"),
        bar,
        Text(f"{most}{format_bytes(size)}", style="bold"),
        f"of {format_bytes(limit)} ({_share(size, limit)})",
    )
    large = [part for part in parts if part.bytes >= _SMALL_SHARE * size]
    rest = size - sum(part.bytes for part in large)
    for part in sorted(large, key=lambda part: part.bytes, reverse=True):
        table.add_row("", f"  {part.name}", format_bytes(part.bytes))
    if rest:
        table.add_row("", "  other", format_bytes(rest))


def _training(footprint: Footprint) -> Text:
    t = footprint.training
    minibatches = t.minibatches_per_epoch
    note = f"{t.gradient_steps:,} in all"
    if minibatches is not None:
        note = f"{minibatches:,} minibatches an epoch"
    return Text(
        f"training  {_at_most(t)}{t.updates:,} updates of {t.timesteps_per_update:,} timesteps; "
        f"{t.gradient_steps_per_update:,} gradient steps in each ({note}); "
        f"{t.checkpoints:,} checkpoints, {t.evaluations:,} evaluations; "
        f"{_at_most(t)}{t.played_timesteps:,} timesteps "
        f"({'at least ' * t.has_waits}{t.frames:,} frames){_replay_ratio(t)}"
    )


def _replay_ratio(t: TrainingArithmetic) -> str:
    """Describe DQN's replay ratio, and any gradient steps before the first timestep."""
    if t.samples_per_timestep is None:
        return ""
    before = f"{t.offline_gradient_steps:,} gradient steps on Lakes before the first timestep"
    return (
        f"; {t.samples_per_timestep:,.3g} samples are learned from for each timestep that is "
        f"played{f'; {before}' if t.offline_gradient_steps else ''}"
    )


def _speed(speed: SpeedForecast, training: TrainingArithmetic) -> Text:
    rate = speed.timesteps_per_s
    duration = format_duration(speed.wall_s)
    if speed.limit_s is not None and speed.limit_s < speed.wall_s:
        duration = f"{format_duration(speed.limit_s)} of training"
    return Text.assemble(
        "speed     about ",
        (f"{rate:,.{0 if rate >= 10 else 1}f} timesteps/s", "bold"),
        ", ",
        (f"{_at_most(training)}{duration}", "bold"),
        f"\n        collecting {speed.share('emulation', 'inference'):.0%} "
        f"(network {speed.share('inference'):.0%}, emulators {speed.share('emulation'):.0%}), "
        f"updating {speed.share('update'):.0%}, evaluating {speed.share('evaluation'):.0%}",
    )


def _growth(rows: tuple[GrowthRow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, title="replay and checkpoints", title_justify="left")
    names = ("timestep", "kept", "as SB3 holds them", "packed", "on disk", "checkpoints")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        on_disk = "not measured" if row.on_disk is None else format_bytes(row.on_disk)
        on_disk = "no Lake" if row.on_disk == 0 else on_disk
        sizes = (format_bytes(row.raw), format_bytes(row.packed), on_disk)
        checkpoints = format_bytes(row.checkpoints)
        table.add_row(f"{row.timesteps:,}", f"{row.kept:,}", *sizes, checkpoints)
    return table


def levels_table(lake: MeasuredLake, present: int) -> Table:
    """Return what each compression level costs.

    Args:
        present: the config's level.
    """
    table = Table(box=None, pad_edge=False)
    for name in ("lake.compression_level", "bytes a timestep", "seconds a million timesteps"):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in lake.levels:
        style = "bold" if cost.level == present else ""
        numbers = (f"{cost.bytes_per_timestep:,.0f}", f"{cost.seconds_per_million:,.0f}")
        table.add_row(f"{cost.level}", *numbers, style=style)
    return table


def render_checks(checks: tuple[CheckResult, ...]) -> Table:
    """Render the checks for people, in their order, one a row."""
    styles = {"found": "yellow", "holds": "green", "does_not_apply": "dim"}
    table = Table(box=None, pad_edge=False, title="checks", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in checks:
        words = check.outcome.replace("_", " ")
        table.add_row(Text(words, styles[check.outcome]), check.name, Text(check.comparison.text))
    return table


def finding_text(finding: Finding) -> Text:
    text = Text.assemble(
        (finding.severity, _SEVERITIES[finding.severity]), f" {finding.key}: {finding.message}"
    )
    if finding.fix is not None:
        text.append("\n  → ")
        text.append(f"--set {finding.fix.key}={finding.fix.value}", style="bold")
    return text
