"""Where the network is computed and in which number format: decided here, for every caller."""

from dataclasses import dataclass
from typing import Literal

from game_rl.system.caches import USUAL_CACHE_BYTES

Precision = Literal["float32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What decides it, of this machine or another.

    has_gpu: there is one that torch can use.
    cpu_has_bf16: the CPU multiplies matrices of bfloat16 faster than those of float32.
    cpus: that a process may use.
    cache_bytes: a CPU's share of the cache of which it has most.
    """

    has_gpu: bool
    cpu_has_bf16: bool
    cpus: int = 1
    cache_bytes: int = USUAL_CACHE_BYTES


@dataclass(frozen=True)
class Placement:
    """device: torch's name of it, such as `cpu`, `cuda` or `cuda:1`; never `auto`."""

    device: str
    precision: Precision

    @property
    def is_on_gpu(self) -> bool:
        return self.device.startswith("cuda")


def find_placement(
    *, device: str, precision: Literal["float32", "bf16", "auto"], hardware: Hardware
) -> Placement:
    """What the config's `device` and `precision` mean on such hardware.

    `device: auto` is the first GPU where there is one; `precision: auto` is bf16 on every GPU, and
    on CPUs that are faster in it. A GPU that is named counts as there.
    """
    if device == "auto":
        device = "cuda" if hardware.has_gpu else "cpu"
    if precision == "auto":
        is_fast = device.startswith("cuda") or hardware.cpu_has_bf16
        precision = "bf16" if is_fast else "float32"
    return Placement(device, precision)


def is_gpu_missing(device: str, *, n_gpus: int) -> bool:
    """Whether `device` names a GPU beyond the `n_gpus` that there are."""
    kind, _, number = device.partition(":")
    return kind == "cuda" and int(number or 0) >= n_gpus
