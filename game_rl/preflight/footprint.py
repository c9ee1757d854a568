"""Memory, disk and work of a run, estimated part by part, and whether that fits a machine."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration
from game_rl.preflight.disk import RunDisk
from game_rl.preflight.facts import EpisodeLengths, RunFacts
from game_rl.preflight.memory import (
    GpuFootprint,
    MemoryFootprint,
    ram_footprint,
    replay_vram_footprint,
    vram_footprint,
)
from game_rl.preflight.workload import TrainingArithmetic, training_arithmetic
from game_rl.system.machine import Machine


@dataclass(frozen=True)
class Footprint:
    """Memory, disk and work of a run.

    Attributes:
        vram: memory of the network's GPU; None if the network is on the CPU.
        replay_vram: memory of the replay's GPU if that is another one; None otherwise.
    """

    ram: MemoryFootprint
    vram: GpuFootprint | None
    replay_vram: GpuFootprint | None
    disk: RunDisk
    training: TrainingArithmetic


def estimate(config: RunConfig, facts: RunFacts) -> Footprint:
    """Return memory by phase, disk at the end, and the counts of the training."""
    training = training_arithmetic(config, began_at=facts.began_at)
    training = replace(training, has_waits=facts.has_waits)
    return Footprint(
        ram=ram_footprint(config, facts),
        vram=vram_footprint(config, facts),
        replay_vram=replay_vram_footprint(config, facts),
        disk=RunDisk(config, facts, training),
        training=training,
    )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A run and the machine that it should run on: all that a finding is made from."""

    config: RunConfig
    facts: RunFacts
    machine: Machine
    footprint: Footprint
    probe: EpisodeLengths | None = None

    def footprint_of(self, config: RunConfig) -> Footprint:
        return estimate(config, self.facts)


Verdict = Literal["fits", "tight", "does_not_fit"]

_ORDER: tuple[Verdict, ...] = ("fits", "tight", "does_not_fit")


def verdict(footprint: Footprint, machine: Machine) -> Verdict:
    """Return the worst verdict of RAM, GPUs and disk.

    "tight" means that the run fits but uses part of the margin that should stay free.
    """
    judges = (ram_verdict, vram_verdict, replay_vram_verdict, disk_verdict)
    return worst(judge(footprint, machine) for judge in judges)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=_ORDER.index)


def ram_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    return ram_bytes_verdict(footprint.ram.peak.bytes, machine)


def ram_bytes_verdict(needed: int, machine: Machine) -> Verdict:
    return verdict_for(needed, comfortable_ram_bytes(machine), machine.ram_available_bytes)


def comfortable_ram_bytes(machine: Machine) -> float:
    """Return the free memory, less the margin within which a run is "tight"."""
    free = (1 - calibration.RAM_MARGIN_FRACTION) * machine.ram_available_bytes
    return free - calibration.RAM_MARGIN_BYTES


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
    return verdict_for(vram.peak.bytes, (1 - calibration.VRAM_MARGIN_FRACTION) * limit, limit)


def disk_verdict(footprint: Footprint, machine: Machine) -> Verdict:
    disk = footprint.disk
    return disk_bytes_verdict(disk.minimum_bytes, disk.recommended_bytes, machine)


def disk_bytes_verdict(minimum: int, recommended: int, machine: Machine) -> Verdict:
    """Return "fits" if the disk has what is recommended, "tight" if it has the minimum."""
    room = machine.disk_room_bytes
    return verdict_for(minimum, room - (recommended - minimum), room)


def verdict_for(needed: float, comfortable: float, limit: float) -> Verdict:
    """Return "fits" up to `comfortable`, "tight" up to `limit`."""
    if needed <= comfortable:
        return "fits"
    return "tight" if needed <= limit else "does_not_fit"
