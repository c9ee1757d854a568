"""What a run will take, part by part."""

from dataclasses import dataclass

from game_rl.preflight.arithmetic import TrainingArithmetic


@dataclass(frozen=True)
class Part:
    name: str
    bytes: int


@dataclass(frozen=True)
class Phase:
    """A stretch of the run and everything that is in memory at its worst moment."""

    name: str
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


@dataclass(frozen=True)
class MemoryFootprint:
    """Memory of one kind over the phases of a run."""

    phases: tuple[Phase, ...]

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)


@dataclass(frozen=True)
class GpuFootprint(MemoryFootprint):
    """Memory of the GPU that torch calls by this number."""

    gpu: int


@dataclass(frozen=True)
class DiskFootprint:
    """The run directory.

    Attributes:
        parts: what is in it when the run has ended.
        checkpoint_bytes: one checkpoint.
        momentary_bytes: more than that while a checkpoint is written beside those it replaces.
        log_bytes_per_update: what grows without end.
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
    """A run.

    Attributes:
        vram: of the GPU that the network is on; None where it is on the CPU.
        replay_vram: of another GPU that the replay is on.
    """

    ram: MemoryFootprint
    vram: GpuFootprint | None
    replay_vram: GpuFootprint | None
    disk: DiskFootprint
    training: TrainingArithmetic
