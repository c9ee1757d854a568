"""Whether a footprint fits a machine."""

from typing import Literal

from game_rl.preflight import calibration
from game_rl.preflight.footprint import Footprint, GpuFootprint
from game_rl.system.machine import Machine

Verdict = Literal["fits", "tight", "does_not_fit"]

_ORDER: tuple[Verdict, ...] = ("fits", "tight", "does_not_fit")


def verdict(footprint: Footprint, machine: Machine) -> Verdict:
    """Return the worst verdict of RAM, GPUs and disk.

    "tight" means that the run fits but uses part of the margin that should stay free.
    """
    parts = (
        ram_verdict(footprint, machine),
        vram_verdict(footprint, machine),
        replay_vram_verdict(footprint, machine),
        disk_verdict(footprint, machine),
    )
    return max(parts, key=_ORDER.index)


def ram_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    limit = machine.ram_available_bytes
    comfortable = (1 - calibration.RAM_MARGIN_FRACTION) * limit - calibration.RAM_MARGIN_BYTES
    return _compare(footprint.ram.peak.bytes, comfortable, limit)


def vram_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    """Whether the memory of the network's GPU suffices; "fits" if no GPU is used."""
    return _gpu_verdict(footprint.vram, machine)


def replay_vram_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    """Whether the memory of the replay's GPU suffices; "fits" if that is not another GPU."""
    return _gpu_verdict(footprint.replay_vram, machine)


def _gpu_verdict(vram: GpuFootprint | None, machine: Machine) -> Verdict:
    if vram is None:
        return "fits"
    limit = machine.gpu_free_bytes(vram.gpu)
    return _compare(vram.peak.bytes, (1 - calibration.VRAM_MARGIN_FRACTION) * limit, limit)


def disk_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    free = machine.disk_free_bytes
    needed = footprint.disk.bytes + footprint.disk.momentary_bytes
    return _compare(needed, free - calibration.DISK_MARGIN_BYTES, free)


def _compare(needed: float, comfortable: float, limit: float) -> Verdict:
    if needed <= comfortable:
        return "fits"
    return "tight" if needed <= limit else "does_not_fit"
