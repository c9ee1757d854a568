"""The number of runs that a machine's memory has room for at once."""

from game_rl.preflight import calibration
from game_rl.preflight.report import Report
from game_rl.system.machine import Machine


def comfortable_ram_bytes(machine: Machine) -> float:
    """Return the free memory, less the margin within which the preflight calls a run tight."""
    free = (1 - calibration.RAM_MARGIN_FRACTION) * machine.ram_available_bytes
    return free - calibration.RAM_MARGIN_BYTES


def slots_by_memory(
    report: Report, machine: Machine, *, beside_all_bytes: int, beside_each_bytes: int = 0
) -> int:
    """Return how many runs like that of `report` fit comfortably in RAM and VRAM; may be 0.

    Args:
        beside_all_bytes: RAM that is taken once, whatever the number of runs.
        beside_each_bytes: RAM that each run takes in addition to its peak; may be negative.
    """
    free = comfortable_ram_bytes(machine) - beside_all_bytes
    slots = int(free // (report.footprint.ram.peak.bytes + beside_each_bytes))
    vram = report.footprint.vram
    if vram is None:
        return slots
    room = (1 - calibration.VRAM_MARGIN_FRACTION) * machine.gpu_free_bytes(vram.gpu)
    return min(slots, int(room // vram.peak.bytes))
