"""The one decision where the network is computed and in which number format."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from game_rl.system.units import MIB

Precision = Literal["float32", "bf16"]
Bf16Way = Literal["native", "converted", "unfolded"]
"""How torch multiplies bfloat16 on a CPU: by instructions for it; by oneDNN, which converts it; or
by its own convolution, which unfolds its input."""
# Used where nothing can be read: on a system without /sys, or in a container or virtual machine
# that hides it. Server and desktop processors of the last ten years have 1 to 4 MiB of L3, or of
# L2, for each CPU.
USUAL_CACHE_BYTES = 2 * MIB


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


_NVIDIA_SMI_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Gpu:
    """The total and the free memory of one GPU."""

    total_bytes: int
    free_bytes: int


def visible_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA would show, in its order, without importing torch."""
    if shutil.which("nvidia-smi") is None:
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return _asked_gpus()
    gpus: tuple[Gpu, ...] = ()
    for name in map(str.strip, visible.split(",")):
        found = () if name in {"", "-1"} else _asked_gpus(f"--id={name}")
        if not found:
            break  # CUDA also stops at the first GPU that does not exist
        gpus += found
    return gpus


def _asked_gpus(*which: str) -> tuple[Gpu, ...]:
    """Ask nvidia-smi for GPUs; none if it fails or does not answer in time."""
    query = ["--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            ["nvidia-smi", *which, *query],
            capture_output=True,
            encoding="utf-8",
            timeout=_NVIDIA_SMI_TIMEOUT_S,
            check=True,
        ).stdout
        return tuple(_gpu(line) for line in answer.splitlines())
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()


def _gpu(line: str) -> Gpu:
    total, free = (int(number) * MIB for number in line.split(","))
    return Gpu(total, free)


def torch_can_use_gpus() -> bool:
    """Whether torch is installed and not the CPU build, whose version ends in "+cpu".

    Torch is not imported for that.
    """
    try:
        return not metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False
