"""What this machine and its container have: memory, disk, processors, GPUs.

The only module that reads cgroups, nvidia-smi or a file system's free space.
`root` parameters exist so that a test can lay out a /proc and a /sys of its own.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from game_rl.errors import UsageError
from game_rl.system.caches import USUAL_CACHE_BYTES, cache_bytes_per_cpu
from game_rl.system.placement import Hardware
from game_rl.system.proc_files import read_number, read_table, read_text
from game_rl.system.units import KIB, MIB, parse_bytes

_ROOT = Path("/")
_NVIDIA_SMI_TIMEOUT_S = 5.0

CPUS_VARIABLE = "GAME_RL_CPUS"
"""In the environment: so many CPUs count as this process's own, whatever the machine has."""


@dataclass(frozen=True)
class Gpu:
    """The memory of one GPU, and what of it is free."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a run may use.

    ram_bytes: the memory of the machine, or of the container if that is less.
    ram_available_bytes: what of it is free for a new run.
    gpus: those that torch can use, by its numbers: `cuda:1` is `gpus[1]`.
    disk_free_bytes: free on the file system that will hold the run directory.
    cpu_has_bf16: the CPU multiplies matrices of bfloat16 faster than those of float32.
    cache_bytes: a CPU's share of the cache of which it has most.
    """

    ram_bytes: int
    ram_available_bytes: int
    gpus: tuple[Gpu, ...]
    disk_free_bytes: int
    cpus: int
    cpu_has_bf16: bool
    cache_bytes: int = USUAL_CACHE_BYTES

    @property
    def vram_bytes(self) -> int | None:
        """Of the first GPU; None where torch has none."""
        return self.gpus[0].total_bytes if self.gpus else None

    def gpu_free_bytes(self, number: int) -> int:
        """Of the GPU that torch calls by this number; 0: there is none."""
        return self.gpus[number].free_bytes if number < len(self.gpus) else 0

    @property
    def hardware(self) -> Hardware:
        """What decides where the network is computed."""
        return Hardware(
            has_gpu=self.vram_bytes is not None,
            cpu_has_bf16=self.cpu_has_bf16,
            cpus=self.cpus,
            cache_bytes=self.cache_bytes,
        )


def detect_machine(run_dir: Path) -> Machine:
    """The machine as this process may use it: container limits and affinity included."""
    total, available = effective_ram_bytes()
    return Machine(
        ram_bytes=total,
        ram_available_bytes=available,
        gpus=visible_gpus() if _torch_can_use_gpus() else (),
        disk_free_bytes=disk_free_bytes(run_dir),
        cpus=effective_cpus(),
        cpu_has_bf16=cpu_has_bf16(),
        cache_bytes=cache_bytes_per_cpu(),
    )


def parse_machine(text: str, *, here: Machine | None = None) -> Machine:
    """The machine that `--on` describes, such as "ram=32GiB,vram=16GiB,disk=250GiB,cpus=8".

    What `text` does not name is as on `here` (default: this machine). "vram" describes one GPU,
    "vram=0" means none.

    Raises:
        UsageError: an unknown or repeated name, a size without a meaning, nothing at all.
    """
    given = _parse_assignments(text)
    base = here if here is not None else detect_machine(Path.cwd())
    vram = given.get("vram", 0)
    described = (Gpu(vram, vram),) if vram else ()
    return Machine(
        ram_bytes=given.get("ram", base.ram_bytes),
        ram_available_bytes=given.get("ram", base.ram_available_bytes),
        gpus=described if "vram" in given else base.gpus,
        disk_free_bytes=given.get("disk", base.disk_free_bytes),
        cpus=given.get("cpus", base.cpus),
        cpu_has_bf16=base.cpu_has_bf16,
        cache_bytes=base.cache_bytes,
    )


def _parse_assignments(text: str) -> dict[str, int]:
    example = "write for example ram=32GiB,vram=16GiB,disk=250GiB,cpus=8"
    given: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in {"ram", "vram", "disk", "cpus"}:
            raise UsageError(f"--on: {part!r} is not ram=, vram=, disk= or cpus=; {example}")
        if name in given:
            raise UsageError(f"--on: {name} is given twice in {text!r}; {example}")
        given[name] = _parse_count(value) if name == "cpus" else parse_bytes(value)
        if given[name] == 0 and name != "vram":
            raise UsageError(f"--on: {name} must be more than 0, found {value!r}; {example}")
    if not given:
        raise UsageError(f"--on: nothing in {text!r} describes a machine; {example}")
    return given


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"--on: cpus must be a whole number, found {text!r}")
    return int(text)


def effective_ram_bytes(root: Path = _ROOT) -> tuple[int, int]:
    """(total, available) bytes of memory: the machine's, or less where a cgroup says so.

    Available in a cgroup is its limit less what is in use and cannot be reclaimed: page cache
    that nobody reads counts as free, as it does in MemAvailable.
    """
    total, available = _system_ram_bytes(root)
    for limit, used in _cgroup_memory(root):
        total = min(total, limit)
        available = min(available, max(0, limit - used))
    return total, available


def _system_ram_bytes(root: Path) -> tuple[int, int]:
    meminfo = read_table(root / "proc/meminfo")
    if "MemTotal" in meminfo and "MemAvailable" in meminfo:
        return meminfo["MemTotal"] * KIB, meminfo["MemAvailable"] * KIB
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)


def _cgroup_memory(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, unreclaimable use) of each cgroup above this process that has a memory limit."""
    for folder in _cgroup_folders(root, "memory"):
        limit = read_number(folder / "memory.max")
        names = ("memory.current", "inactive_file")
        if limit is None:
            limit = read_number(folder / "memory.limit_in_bytes")
            names = ("memory.usage_in_bytes", "total_inactive_file")
        used = read_number(folder / names[0])
        if limit is not None and used is not None:
            cache = read_table(folder / "memory.stat").get(names[1], 0)
            yield limit, max(0, used - cache)


def effective_cpus(root: Path = _ROOT) -> int:
    """CPUs that this process may use: its affinity, or a cgroup's quota if that is less.

    What `GAME_RL_CPUS` says comes first: numbers round as on a machine with so many.

    Raises:
        UsageError: it says no number.
    """
    if (chosen := os.environ.get(CPUS_VARIABLE)) is not None:
        return _chosen_cpus(chosen)
    cpus = _affinity_cpus()
    for folder in _cgroup_folders(root, "cpu"):
        quota, period = _cpu_quota(folder)
        if quota is not None and period:
            cpus = min(cpus, -(-quota // period))  # half a CPU still runs one process
    return max(1, cpus)


def _chosen_cpus(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(
            f"{CPUS_VARIABLE} is {text!r}, not a number of CPUs; write one or unset it"
        )
    return int(text)


def own_cores(root: Path = _ROOT) -> list[int]:
    """The CPUs that this process may use, by number; none where they are not its own.

    That is so where a cgroup's quota is less than they are, where `GAME_RL_CPUS` shares them out,
    and where the system does not say.
    """
    if CPUS_VARIABLE in os.environ:
        return []
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores if len(cores) == effective_cpus(root) else []


def cpu_has_bf16(root: Path = _ROOT) -> bool:
    """Whether the CPU multiplies bfloat16 by itself: AVX512-BF16, or the tiles of AMX besides.

    NatureCNN learns 1.6 times as fast in it with the former, twice with the latter.
    """
    flags = re.search(r"^flags\s*:(.*)$", read_text(root / "proc/cpuinfo"), re.MULTILINE)
    return flags is not None and not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags[1].split())


def processor_name(root: Path = _ROOT) -> str:
    """The CPU's model, as its maker names it; "" where the system does not say."""
    found = re.search(r"^model name\s*:(.*)$", read_text(root / "proc/cpuinfo"), re.MULTILINE)
    return platform.processor() if found is None else found[1].strip()


def _affinity_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_quota(folder: Path) -> tuple[int | None, int | None]:
    words = read_text(folder / "cpu.max").split()
    if len(words) == 2:
        return (int(words[0]) if words[0].isdigit() else None), int(words[1])
    return read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us")


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """The process's cgroup for `controller`, then each of its parents, in v2 and in v1.

    Inside a container the path of /proc/self/cgroup may name folders that only the host can see;
    those are skipped, and the container's own root comes last.
    """
    mounts = root / "sys/fs/cgroup"
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if not controllers:
            tops = [mounts, mounts / "unified"]
        elif controller in names:
            tops = [mounts / controllers, mounts / controller]
        else:
            continue
        for top in tops:
            leaf = top / path.lstrip("/")
            while leaf != top:
                if leaf.is_dir():
                    yield leaf
                leaf = leaf.parent
            if top.is_dir():
                yield top


def is_same_disk(one: Path, other: Path) -> bool:
    """Whether what fills one fills the other; True if that cannot be found out."""
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return True


def disk_free_bytes(path: Path) -> int:
    """Free bytes for this user where `path` is, or will be once its folders are made."""
    existing = path.absolute()
    while not existing.exists():
        existing = existing.parent
    return shutil.disk_usage(existing).free


def visible_gpus() -> tuple[Gpu, ...]:
    """Those that CUDA would show us, in its order, without importing torch."""
    if shutil.which("nvidia-smi") is None:
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return _asked_gpus()
    gpus: tuple[Gpu, ...] = ()
    for name in map(str.strip, visible.split(",")):
        found = () if name in {"", "-1"} else _asked_gpus(f"--id={name}")
        if not found:
            break  # CUDA, too, looks no further than the first that is not there
        gpus += found
    return gpus


def _asked_gpus(*which: str) -> tuple[Gpu, ...]:
    """As nvidia-smi answers; a driver that does not is no GPU to plan with."""
    query = ["--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            ["nvidia-smi", *which, *query],
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_TIMEOUT_S,
            check=True,
        ).stdout
        return tuple(_gpu(line) for line in answer.splitlines())
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()


def _gpu(line: str) -> Gpu:
    total, free = (int(number) * MIB for number in line.split(","))
    return Gpu(total, free)


def cpu_percent() -> float:
    """Load of all CPUs since the last call, 0..100; 0 at the first call."""
    return psutil.cpu_percent(interval=None)


def _torch_can_use_gpus() -> bool:
    """False for the CPU build of torch, whose version ends in "+cpu"; told without importing it."""
    try:
        return not metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False
