"""Findings about resources that a run lacks, each with the smallest change that helps."""

from dataclasses import dataclass
from typing import Literal

from game_rl.preflight import calibration, remedies, verdict
from game_rl.preflight.changes import Fix
from game_rl.preflight.disk import timestep_of_full_disk
from game_rl.preflight.footprint import GpuFootprint, Phase
from game_rl.preflight.gpus import network_gpu, replay_gpu
from game_rl.preflight.growth import lake_bytes
from game_rl.preflight.situation import Situation
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One sentence for the user about a run.

    Attributes:
        severity: "error": the run does not fit; "warning": the user should look at it; "info": the
            run could be better.
        key: the config key that the finding is about.
        fix: a single change after which the finding is gone; None if there is none.
    """

    severity: Severity
    code: str
    key: str
    message: str
    fix: Fix | None


def gpu_missing(situation: Situation) -> Finding | None:
    device = situation.config.device
    gpu = network_gpu(situation.config, situation.facts)
    if not device.startswith("cuda") or gpu is None or gpu < len(situation.machine.gpus):
        return None
    return Finding(
        "error",
        "gpu_missing",
        "device",
        f"device is {device}, but {_gpus_there(situation.machine)}",
        Fix("device", "auto"),
    )


def replay_gpu_missing(situation: Situation) -> Finding | None:
    gpu = replay_gpu(situation.config)
    if gpu is None or gpu < len(situation.machine.gpus):
        return None
    return Finding(
        "error",
        "replay_gpu_missing",
        "algorithm.replay.device",
        f"the replay should be on cuda:{gpu}, but {_gpus_there(situation.machine)}",
        Fix("algorithm.replay.device", "cpu"),
    )


def ram_short(situation: Situation) -> Finding | None:
    result = verdict.ram_verdict(situation.footprint, situation.machine)
    if result == "fits":
        return None
    peak, limit = situation.footprint.ram.peak, situation.machine.ram_available_bytes
    fix = remedies.cheapest_fix(situation, verdict.ram_verdict, remedies.ram_changes(situation))
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"ram_{result}",
        fix.key if fix else remedies.storage_key(situation.config),
        f"needs {format_bytes(peak.bytes)} of RAM in the phase {peak.name!r}, mostly "
        f"{_largest(peak)}, and {format_bytes(limit)} are available{_margin_note(result)}"
        f"{_same_learning_note(fix)}",
        fix,
    )


def vram_short(situation: Situation) -> Finding | None:
    """Report a lack of memory on the network's GPU."""
    vram = situation.footprint.vram
    result = verdict.vram_verdict(situation.footprint, situation.machine)
    if vram is None or vram.gpu >= len(situation.machine.gpus) or result == "fits":
        return None
    fix = remedies.cheapest_fix(situation, verdict.vram_verdict, remedies.vram_changes(situation))
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"vram_{result}",
        fix.key if fix else "algorithm.batch_size",
        f"{_gpu_needs(vram, situation.machine)}{_margin_note(result)}{_same_learning_note(fix)}",
        fix,
    )


def replay_vram_short(situation: Situation) -> Finding | None:
    """Report a lack of memory on the replay's GPU, if that is not the network's."""
    vram = situation.footprint.replay_vram
    result = verdict.replay_vram_verdict(situation.footprint, situation.machine)
    if vram is None or vram.gpu >= len(situation.machine.gpus) or result == "fits":
        return None
    candidates = remedies.replay_vram_changes(situation)
    fix = remedies.cheapest_fix(situation, verdict.replay_vram_verdict, candidates)
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"replay_vram_{result}",
        "algorithm.replay.device",
        f"cuda:{vram.gpu}: {_gpu_needs(vram, situation.machine)}{_margin_note(result)}",
        fix,
    )


def disk_short(situation: Situation) -> Finding | None:
    result = verdict.disk_verdict(situation.footprint, situation.machine)
    if result == "fits":
        return None
    disk, free = situation.footprint.disk, situation.machine.disk_free_bytes
    full_at = timestep_of_full_disk(situation.config, situation.facts, situation.footprint, free)
    when = f"the disk is full at timestep {full_at:,}: " if full_at is not None else ""
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"disk_{result}",
        "checkpoints.keep_last",
        f"{when}the run takes {format_bytes(disk.bytes)} and, while a checkpoint is written, "
        f"{format_bytes(disk.momentary_bytes)} more; {format_bytes(free)} are free"
        f"{_margin_note(result)}",
        remedies.cheapest_fix(situation, verdict.disk_verdict, remedies.disk_changes(situation)),
    )


def lake_outgrows_disk(situation: Situation) -> Finding | None:
    """Warn if the Lake will fill the disk.

    A training continues when there is no space for more of its Lake, so the verdict ignores it.
    """
    config, disk = situation.config, situation.footprint.disk
    lake = config.lake
    if lake is None:
        return None
    total = situation.footprint.training.played_timesteps
    size = lake_bytes(config, situation.facts, total)
    needed = disk.bytes + disk.momentary_bytes + calibration.DISK_MARGIN_BYTES
    left = situation.machine.disk_free_bytes - needed
    if size is None or size <= left or not situation.lake_is_on_this_disk:
        return None
    per_timestep = situation.facts.lake_bytes_per_timestep
    assert per_timestep is not None
    then = "it stops growing" if lake.on_full == "pause" else "its oldest files are deleted"
    key = "lake.capacity_gb"
    room_gb = max(0, left) // 10**9
    return Finding(
        "warning",
        "lake_outgrows_disk",
        key,
        f"the Lake takes {format_bytes(size)} over the run, but checkpoints and logs leave only "
        f"{format_bytes(max(0, left))} of the disk for it; from timestep "
        f"{situation.facts.began_at + round(max(0, left) / per_timestep):,} on {then}",
        Fix(key, room_gb) if room_gb else None,
    )


def _largest(phase: Phase) -> str:
    part = max(phase.parts, key=lambda part: part.bytes)
    return f"{part.name} ({format_bytes(part.bytes)})"


def _gpu_needs(vram: GpuFootprint, machine: Machine) -> str:
    return (
        f"needs {format_bytes(vram.peak.bytes)} of GPU memory, mostly {_largest(vram.peak)}, and "
        f"{format_bytes(machine.gpu_free_bytes(vram.gpu))} are free"
    )


def _gpus_there(machine: Machine) -> str:
    if not machine.gpus:
        return "the machine has no GPU that torch can use"
    return f"the last GPU of the machine that torch can use is cuda:{len(machine.gpus) - 1}"


def _margin_note(result: verdict.Verdict) -> str:
    return "" if result == "does_not_fit" else ", which leaves no margin for other programs"


def _same_learning_note(fix: Fix | None) -> str:
    if fix is None or fix.key != "algorithm.micro_batch_size":
        return ""
    parts = "" if fix.value == "auto" else f" of {fix.value}"
    return (
        f"; batches computed in parts{parts} learn the same: the gradient is that of the whole "
        "batch"
    )
