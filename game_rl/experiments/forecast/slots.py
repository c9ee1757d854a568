"""How many runs a machine's memory has room for at once."""

from game_rl.preflight import calibration
from game_rl.preflight.report import Report
from game_rl.system.machine import Machine


def comfortable_ram_bytes(machine: Machine) -> float:
    """What is free, less the margin beyond which the preflight calls a run tight."""
    free = (1 - calibration.RAM_MARGIN_FRACTION) * machine.ram_available_bytes
    return free - calibration.RAM_MARGIN_BYTES


def slots_by_memory(
    report: Report, machine: Machine, *, beside_all_bytes: int, beside_each_bytes: int = 0
) -> int:
    """Runs like that of `report` which are comfortable in RAM and VRAM together; 0 is possible.

    Args:
        beside_all_bytes: of RAM, taken once, however many runs there are.
        beside_each_bytes: of RAM, taken with each run.
    """
    free = comfortable_ram_bytes(machine) - beside_all_bytes
    slots = int(free // (report.footprint.ram.peak.bytes + beside_each_bytes))
    vram = report.footprint.vram
    if vram is None:
        return slots
    room = (1 - calibration.VRAM_MARGIN_FRACTION) * machine.gpu_free_bytes(vram.gpu)
    return min(slots, int(room // vram.peak.bytes))
