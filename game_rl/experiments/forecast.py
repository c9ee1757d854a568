"""What a population takes: memory of members that train at once, disk by generation."""

from dataclasses import dataclass
from typing import Literal

from game_rl.config.experiments import Population
from game_rl.games.definition import Game
from game_rl.preflight.preflight import preflight
from game_rl.preflight.report import Report
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine

CONTROLLER_BYTES = 64 * 2**20  # measured 54 MB
_COMFORT = 0.85  # of the memory that is free: members grow at the same time


@dataclass(frozen=True)
class PopulationReport:
    """Whether a population fits a machine.

    Attributes:
        member: of one member, alone on the machine.
        slots: members that train at once.
    """

    verdict: Verdict
    machine: Machine
    member: Report
    slots: int

    @property
    def ram_bytes(self) -> int:
        return self.slots * self.member.footprint.ram.peak.bytes + CONTROLLER_BYTES


def population_preflight(population: Population, game: Game, machine: Machine) -> PopulationReport:
    """Multiply a member's footprint."""
    member = preflight(population.run, game, machine)
    slots = slots_of(population, member, machine)
    return PopulationReport(member.verdict, machine, member, slots)


def slots_of(population: Population, member: Report, machine: Machine) -> int:
    """Members that train at once: as the config says, or as many as CPUs and memory allow."""
    config = population.config
    wanted: int | Literal["auto"] = config.executor.parallel
    if wanted != "auto":
        return min(wanted, config.members)
    by_cpus = machine.cpus // config.cpus_per_member
    free = machine.ram_available_bytes * _COMFORT - CONTROLLER_BYTES
    by_memory = int(free // member.footprint.ram.peak.bytes)
    return max(1, min(config.members, by_cpus, by_memory))
