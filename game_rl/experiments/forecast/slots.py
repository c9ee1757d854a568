"""The number of runs that a machine's memory has room for at once."""

from game_rl.config.experiments.executor_config import ExecutorConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.experiments.forecast.overhead import controller_bytes, is_on_nodes, task_bytes
from game_rl.preflight import calibration
from game_rl.preflight.preflight_report import Report
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


def slots_of(config: PopulationConfig, member: Report, machine: Machine) -> int:
    """Return the number of members that train at once.

    It is the config's or, if that is "auto", as many as CPUs and memory allow. A node of a cluster
    never gets more than it has room for.
    """
    wanted, executor = config.executor.parallel, config.executor
    most = config.members if wanted == "auto" else min(wanted, config.members)
    if wanted != "auto" and not is_on_nodes(executor):
        return most
    by_cpus = machine.cpus // config.cpus_per_member
    return max(1, min(most, by_cpus, member_slots_by_memory(executor, member, machine)))


def member_slots_by_memory(executor: ExecutorConfig, member: Report, machine: Machine) -> int:
    return slots_by_memory(
        member,
        machine,
        beside_all_bytes=controller_bytes(executor),
        beside_each_bytes=task_bytes(executor),
    )
