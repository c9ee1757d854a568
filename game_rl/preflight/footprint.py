"""Memory and disk that a run takes, part by part, and whether that fits a machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from game_rl.features.feature import Part
from game_rl.preflight import calibration
from game_rl.preflight.workload import TrainingArithmetic
from game_rl.system.machine import Machine

CUDA_CONTEXT = "CUDA context"


@dataclass(frozen=True)
class Phase:
    """A phase of the run, with everything that is in memory at its worst moment."""

    name: str
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


@dataclass(frozen=True)
class MemoryFootprint:
    """Memory of one kind (RAM, or that of one GPU) over the phases of a run."""

    phases: tuple[Phase, ...]

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)


@dataclass(frozen=True)
class GpuFootprint(MemoryFootprint):
    """Memory of one GPU; `gpu` is torch's number of it."""

    gpu: int

    @property
    def reserved_bytes(self) -> int:
        """What torch's caching allocator reserves at the peak: all but CUDA's context."""
        parts = self.peak.parts
        return sum(part.bytes for part in parts if part.name != CUDA_CONTEXT)


@dataclass(frozen=True)
class DiskFootprint:
    """Size of the run directory.

    Attributes:
        parts: what the directory holds at the end of the run.
        checkpoint_bytes: size of the run's last checkpoint.
        momentary_bytes: bytes in addition to `parts` while files exist that are deleted soon: a
            checkpoint that a new one replaces or that is being uploaded, and `removed_bytes`.
        removed_bytes: size of files that the training removes when it closes: tables of Lakes, the
            file for whoever watches.
        log_bytes_per_update: bytes that curves, events and tables grow by in an update.
        lake_bytes: size of the run's Lake at the end if it is on the same disk; 0 without one, None
            if the game's compression was not measured.
        lake_needed_bytes: the part of `minimum_bytes` that is there for the Lake.
        minimum_bytes: free space with which the run ends; see `DiskPlan`.
        recommended_bytes: likewise, with a margin.
    """

    parts: tuple[Part, ...]
    checkpoint_bytes: int
    momentary_bytes: int
    removed_bytes: int
    log_bytes_per_update: float
    lake_bytes: int | None
    lake_needed_bytes: int
    minimum_bytes: int
    recommended_bytes: int

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


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
    disk: DiskFootprint
    training: TrainingArithmetic


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
