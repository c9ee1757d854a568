"""Whether a run fits the machine, what it takes and how long: forecast, and compared afterwards."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.config.schema import RunConfig
from game_rl.features.feature import Part
from game_rl.games.definition import Game
from game_rl.preflight.disk import GrowthRow
from game_rl.preflight.disk_plan import DiskPlan, lake_text, number_table, render_plan
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, RunFacts, run_facts
from game_rl.preflight.findings import CheckResult, Finding, worst_first
from game_rl.preflight.fit_checks import FIT_CHECKS
from game_rl.preflight.footprint import Footprint, Situation, Verdict, estimate, verdict
from game_rl.preflight.memory import GpuFootprint, MemoryFootprint
from game_rl.preflight.rendering import (
    disk_line,
    finding_text,
    of_available,
    share_text,
    verdict_line,
)
from game_rl.preflight.setting_checks import SETTING_CHECKS
from game_rl.preflight.workload import (
    MeasuredSpeed,
    SpeedForecast,
    TrainingArithmetic,
    forecast_speed,
)
from game_rl.statistics import percent
from game_rl.system.machine import Machine
from game_rl.system.units import counted, format_bytes, format_deviation, format_duration

FootprintComparison = dict[str, dict[str, int | float]]

CHECKS = (*FIT_CHECKS, *SETTING_CHECKS)


@dataclass(frozen=True)
class PreflightReport:
    """Whether a run fits a machine, the resources that it takes, and what to change.

    Attributes:
        machine: CPUs, memory and disk of the machine, in bytes.
        footprint: predicted memory, disk and work of the training, part by part, in bytes.
        checks: every check, with what it compared; those that found something are in `findings`.
        speed: timesteps per second and hours; None if the machine's speed was not measured.
    """

    machine: Machine
    footprint: Footprint
    checks: tuple[CheckResult, ...]
    speed: SpeedForecast | None = None

    @cached_property
    def plan(self) -> DiskPlan:
        """Disk needed over the timesteps of the run, in bytes."""
        timesteps_per_s = None if self.speed is None else self.speed.timesteps_per_s
        disk = self.footprint.disk
        return disk.plan_at_speed(self.machine.installation_bytes, timesteps_per_s)

    @cached_property
    def verdict(self) -> Verdict:
        """`fits`, `tight` or `does_not_fit`."""
        if any(finding.severity == "error" for finding in self.findings):
            return "does_not_fit"
        return verdict(self.footprint, self.machine)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What does not fit or could be better, the most severe first, each with the way out."""
        return worst_first(check.finding for check in self.checks)

    @cached_property
    def growth(self) -> tuple[GrowthRow, ...]:
        """What the timesteps on disk take as they grow; empty for a run that keeps none there."""
        return self.footprint.disk.growth()

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        The parts of RAM and VRAM are those of the peak phase and sum to the peak. `vram` describes
        the network's GPU, `replay_vram` the replay's if that is another one. `disk.parts` sum to
        the size of the run directory at the run's end, without a Lake. The Lake is in `disk.plan`
        and in `growth`, which is empty for a run that keeps no timesteps on disk. Timesteps, time
        and disk are upper bounds if `may_end_early`. `speed.seconds` sum to `speed.wall_s`.
        """
        disk = self.footprint.disk
        training = self.footprint.training
        machine = self.machine
        speed = None
        if self.speed is not None:
            speed = {
                "timesteps_per_s": self.speed.timesteps_per_s,
                "wall_s": self.speed.wall_s,
                "seconds": dict(self.speed.seconds),
            }
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
            "speed": speed,
            "growth": [asdict(row) for row in self.growth],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def summary(self) -> RenderableType:
        """Return verdict, memory and disk, and what is wrong."""
        peak = self.footprint.ram.peak.bytes
        used = [of_available("RAM", peak, self.machine.ram_available_bytes)]
        used += [
            of_available(f"VRAM of cuda:{vram.gpu}", vram.peak.bytes, free)
            for vram, free in self._gpus()
        ]
        return Group(
            verdict_line(self.verdict, self.machine),
            Text(f"memory  {'; '.join(used)}"),
            disk_line(self.plan, self.machine, _at_most(self.footprint.training)),
            *(finding_text(each) for each in self.findings if each.severity != "info"),
        )

    def table(self) -> RenderableType:
        """Return the verdict, memory, disk, time, and what to change."""
        phase = self.footprint.ram.peak.name
        line = verdict_line(self.verdict, self.machine)
        parts: list[RenderableType] = [
            line.append(f"; memory peaks in the phase {phase!r}"),
            self._resources(),
            _training(self.footprint.training),
        ]
        if self.speed is not None:
            parts.append(_speed(self.speed, self.footprint.training))
        parts.append(render_plan(self.plan, free_bytes=self.machine.disk_free_bytes))
        if self.growth:
            parts.append(_growth(self.growth))
        return Group(*parts, *map(finding_text, self.findings))

    def _gpus(self) -> Iterator[tuple[GpuFootprint, int]]:
        """Yield what is taken of each GPU, and its free memory."""
        for vram in (self.footprint.vram, self.footprint.replay_vram):
            if vram is not None:
                yield vram, self.machine.gpu_free_bytes(vram.gpu)

    def _resources(self) -> Table:
        footprint = self.footprint
        machine = self.machine
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(2):
            table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column()
        _add_rows(table, "RAM", footprint.ram.peak.parts, machine.ram_available_bytes)
        for vram, free in self._gpus():
            name = "VRAM" if vram is footprint.vram else f"VRAM of cuda:{vram.gpu}"
            _add_rows(table, name, vram.peak.parts, free)
        most = _at_most(footprint.training)
        _add_rows(table, "disk", self.plan.parts, machine.disk_free_bytes, most)
        momentary = format_bytes(footprint.disk.momentary_bytes)
        table.add_row("", "  while a checkpoint is written", f"+{momentary}")
        return table


def preflight(
    config: RunConfig,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: MeasuredSpeed | None = None,
) -> PreflightReport:
    """Estimate a run, compare it with the machine, and look for settings that could be better.

    Args:
        probe: measured lengths of episodes; None: not measured.
        lake: measured size of a timestep in a Lake; None: not measured.
        measured: measured speed of `machine` at this run; None: not measured.
    """
    facts = run_facts(config, game, machine, probe, lake)
    return report_of(config, facts, machine, probe=probe, measured=measured)


def report_of(
    config: RunConfig,
    facts: RunFacts,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    measured: MeasuredSpeed | None = None,
) -> PreflightReport:
    """As `preflight`, with the game given as numbers."""
    footprint = estimate(config, facts)
    situation = Situation(
        config=config, facts=facts, machine=machine, footprint=footprint, probe=probe
    )
    length = facts.episode_timesteps if probe is None else probe.mean
    speed = None
    if measured is not None:
        speed = forecast_speed(config, footprint.training, measured, episode_timesteps=length)
    return PreflightReport(machine, footprint, explain(situation), speed)


def explain(situation: Situation) -> tuple[CheckResult, ...]:
    """Run every check; return each with what it compared."""
    return tuple(CheckResult(check.__name__, check(situation)) for check in CHECKS)


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
    pairs = {
        "ram_peak_bytes": (predicted.ram.peak.bytes, ram_peak_bytes),
        "disk_total_bytes": (predicted.disk.bytes, disk_bytes),
    }
    if predicted.vram is not None and vram_reserved_bytes:
        pairs["vram_reserved_bytes"] = (predicted.vram.reserved_bytes, vram_reserved_bytes)
    compared: FootprintComparison = {}
    for name, (bytes_predicted, measured) in pairs.items():
        error = bytes_predicted / measured - 1 if measured else 0.0
        compared[name] = {
            "predicted": bytes_predicted,
            "measured": measured,
            "error": round(error, 4),
        }
    return compared


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


_BAR_WIDTH = 20
_SMALL_SHARE = 0.02  # parts below this share of the whole are summed up as "other"


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
        f"of {format_bytes(limit)} ({share_text(size, limit)})",
    )
    large = [part for part in parts if part.bytes >= _SMALL_SHARE * size]
    rest = size - sum(part.bytes for part in large)
    for part in sorted(large, key=lambda part: part.bytes, reverse=True):
        table.add_row("", f"  {part.name}", format_bytes(part.bytes))
    if rest:
        table.add_row("", "  other", format_bytes(rest))


def _training(t: TrainingArithmetic) -> Text:
    minibatches = t.minibatches_per_epoch
    note = f"{t.gradient_steps:,} in all"
    if minibatches is not None:
        note = f"{minibatches:,} minibatches an epoch"
    replayed = ""
    if t.samples_per_timestep is not None:  # DQN's replay ratio
        samples = f"{t.samples_per_timestep:,.3g} samples"
        replayed = f"; {samples} are learned for each timestep played"
        if t.offline_gradient_steps:
            steps = counted(t.offline_gradient_steps, "gradient step")
            replayed += f"; {steps} on Lakes before the first timestep"
    return Text(
        f"training  {_at_most(t)}{counted(t.updates, 'update')} of "
        f"{counted(t.timesteps_per_update, 'timestep')}; "
        f"{counted(t.gradient_steps_per_update, 'gradient step')} in each ({note}); "
        f"{counted(t.checkpoints, 'checkpoint')}, {counted(t.evaluations, 'evaluation')}; "
        f"{_at_most(t)}{counted(t.played_timesteps, 'timestep')} "
        f"({'at least ' * t.has_waits}{t.frames:,} frames){replayed}"
    )


def _speed(speed: SpeedForecast, training: TrainingArithmetic) -> Text:
    rate = speed.timesteps_per_s
    duration = format_duration(speed.wall_s)
    if speed.limit_s is not None and speed.limit_s < speed.wall_s:
        duration = f"{format_duration(speed.limit_s)} of training"
    collecting = percent(speed.share("emulation", "inference"))
    network = percent(speed.share("inference"))
    emulators = percent(speed.share("emulation"))
    return Text.assemble(
        "speed     about ",
        (f"{rate:,.{0 if rate >= 10 else 1}f} timesteps/s", "bold"),
        ", ",
        (f"{_at_most(training)}{duration}", "bold"),
        f"\n        collecting {collecting} (network {network}, emulators {emulators}), updating "
        f"{percent(speed.share('update'))}, evaluating {percent(speed.share('evaluation'))}",
    )


def _growth(rows: tuple[GrowthRow, ...]) -> Table:
    names = ("timestep", "kept", "as SB3 holds them", "packed", "on disk", "checkpoints")
    table = number_table(*names, title="replay and checkpoints")
    for row in rows:
        sizes = (format_bytes(row.raw), format_bytes(row.packed), lake_text(row.on_disk))
        checkpoints = format_bytes(row.checkpoints)
        table.add_row(f"{row.timesteps:,}", f"{row.kept:,}", *sizes, checkpoints)
    return table


def levels_table(lake: MeasuredLake, present: int) -> Table:
    """Return what each compression level costs.

    Args:
        present: the config's level.
    """
    names = ("lake.compression_level", "bytes a timestep", "seconds a million timesteps")
    table = number_table(*names)
    for cost in lake.levels:
        style = "bold" if cost.level == present else ""
        numbers = (f"{cost.bytes_per_timestep:,.0f}", f"{cost.seconds_per_million:,.0f}")
        table.add_row(f"{cost.level}", *numbers, style=style)
    return table
