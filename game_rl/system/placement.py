"""The one decision where the network is computed and in which number format."""

from dataclasses import dataclass
from typing import Literal

from game_rl.system.caches import USUAL_CACHE_BYTES

Precision = Literal["float32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The properties of a machine on which the placement and the size of micro-batches depend.

    Attributes:
        has_gpu: whether torch can use a GPU.
        cpu_has_bf16: whether the CPU multiplies matrices of bfloat16 faster than those of float32.
        cpus: CPUs that a process may use.
        cache_bytes: a CPU's share of the cache level in which that share is largest.
    """

    has_gpu: bool
    cpu_has_bf16: bool
    cpus: int = 1
    cache_bytes: int = USUAL_CACHE_BYTES


@dataclass(frozen=True)
class Placement:
    """The device and the number format in which the network is computed.

    Attributes:
        device: torch's name of the device, such as `cpu`, `cuda` or `cuda:1`; never `auto`.
    """

    device: str
    precision: Precision

    @property
    def is_on_gpu(self) -> bool:
        return self.device.startswith("cuda")


def find_placement(
    *, device: str, precision: Literal["float32", "bf16", "auto"], hardware: Hardware
) -> Placement:
    """Return what the config's `device` and `precision` mean on this hardware.

    `device: auto` is the first GPU if there is one. `precision: auto` is bf16 on every GPU, and on
    CPUs that are faster in it. A GPU that `device` names is assumed to exist.
    """
    if device == "auto":
        device = "cuda" if hardware.has_gpu else "cpu"
    if precision == "auto":
        is_fast = device.startswith("cuda") or hardware.cpu_has_bf16
        precision = "bf16" if is_fast else "float32"
    return Placement(device, precision)


def is_gpu_missing(device: str, *, n_gpus: int) -> bool:
    """Whether `device` names a GPU that does not exist among `n_gpus`."""
    kind, _, number = device.partition(":")
    return kind == "cuda" and int(number or 0) >= n_gpus
