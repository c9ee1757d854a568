"""Memory and disk that a run will take, part by part."""

from dataclasses import dataclass

from game_rl.preflight.arithmetic import TrainingArithmetic


@dataclass(frozen=True)
class Part:
    """A named share of memory or disk."""

    name: str
    bytes: int


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


@dataclass(frozen=True)
class DiskFootprint:
    """Size of the run directory.

    Attributes:
        parts: what the directory holds when the run has ended.
        checkpoint_bytes: size of the run's last checkpoint.
        momentary_bytes: bytes in addition to `parts` while files exist that are deleted soon: a
            checkpoint that a new one replaces or that is being uploaded, and tables of Lakes.
        log_bytes_per_update: bytes that curves, events and tables grow by in an update.
    """

    parts: tuple[Part, ...]
    checkpoint_bytes: int
    momentary_bytes: int
    log_bytes_per_update: float

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
