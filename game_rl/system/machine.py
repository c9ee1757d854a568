"""Memory, disk, CPUs and caches of this machine and its container.

This is the only module that reads cgroups, nvidia-smi or a file system's free space. The `root`
parameters exist so that tests can create their own /proc and /sys.
"""

import functools
import ipaddress
import os
import platform
import re
import shutil
import socket
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from game_rl.errors import UsageError
from game_rl.system.import_cost import USUAL_IMPORT_COST, ImportCost, import_cost
from game_rl.system.placement import (
    USUAL_CACHE_BYTES,
    Bf16Way,
    Gpu,
    Hardware,
    torch_can_use_gpus,
    visible_gpus,
)
from game_rl.system.processes import CPUS_VARIABLE
from game_rl.system.units import KIB, MIB, parse_bytes

_ROOT = Path("/")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Resources that a run may use.

    Attributes:
        ram_bytes: memory of the machine, or of the container if that is less.
        ram_available_bytes: the part of it that is free for a new run.
        gpus: GPUs that torch can use, by its numbers: `cuda:1` is `gpus[1]`.
        disk_free_bytes: free space on the file system that will hold the run directory.
        cpus: CPUs that this process may use.
        cpu_has_bf16: whether the CPU multiplies matrices of bfloat16 faster than those of float32.
        cache_bytes: a CPU's share of the cache level in which that share is largest.
        bf16_way: how torch multiplies bfloat16 on the CPU, where a config asks for it.
        imports: memory that importing the libraries takes.
        reservable_bytes: memory that a process may reserve without using it, by Linux's heuristic:
            that of the host and its swap, whatever a container may use; None: `ram_bytes`.
        installation_bytes: what Python's packages will take of that free space; 0 where they are
            installed already.
    """

    ram_bytes: int
    ram_available_bytes: int
    gpus: tuple[Gpu, ...]
    disk_free_bytes: int
    cpus: int
    cpu_has_bf16: bool
    cache_bytes: int = USUAL_CACHE_BYTES
    bf16_way: Bf16Way = "native"
    imports: ImportCost = USUAL_IMPORT_COST
    reservable_bytes: int | None = None
    installation_bytes: int = 0

    @property
    def disk_room_bytes(self) -> int:
        """Free space on the disk for a run, once everything is installed."""
        return self.disk_free_bytes - self.installation_bytes

    @property
    def vram_bytes(self) -> int | None:
        """Total memory of the first GPU; None if torch can use none."""
        return self.gpus[0].total_bytes if self.gpus else None

    def gpu_free_bytes(self, number: int) -> int:
        """Return the free memory of the GPU with torch's number `number`; 0 if there is none."""
        return self.gpus[number].free_bytes if number < len(self.gpus) else 0

    @property
    def hardware(self) -> Hardware:
        """The facts that decide where the network is computed."""
        return Hardware(
            has_gpu=self.vram_bytes is not None,
            cpu_has_bf16=self.cpu_has_bf16,
            cpus=self.cpus,
            cache_bytes=self.cache_bytes,
        )


def with_room(machine: Machine, own_bytes: int) -> Machine:
    """Return the machine as something finds it that already has `own_bytes` of files on its disk.

    A forecast of all its files is compared with the space that is free beside them.
    """
    return replace(machine, disk_free_bytes=machine.disk_free_bytes + own_bytes)


def without_installation(machine: Machine) -> Machine:
    """Return a machine like this one on whose disk the packages are still to be installed."""
    return replace(machine, installation_bytes=machine.installation_bytes or installed_bytes())


def detect_machine(run_dir: Path) -> Machine:
    """Return the machine as this process may use it, within container limits and CPU affinity."""
    total, available = effective_ram_bytes()
    return Machine(
        ram_bytes=total,
        ram_available_bytes=available,
        gpus=visible_gpus() if torch_can_use_gpus() else (),
        disk_free_bytes=disk_free_bytes(run_dir),
        cpus=effective_cpus(),
        cpu_has_bf16=cpu_has_bf16(),
        cache_bytes=cache_bytes_per_cpu(),
        bf16_way=bf16_way(),
        imports=import_cost(),
        reservable_bytes=psutil.virtual_memory().total + psutil.swap_memory().total,
    )


PRESETS = {
    "small": "ram=8GiB,vram=0,disk=50GiB,cpus=2",
    "medium": "ram=32GiB,vram=16GiB,disk=250GiB,cpus=8",
    "large": "ram=128GiB,vram=48GiB,disk=1000GiB,cpus=32",
}
"""Machines that `--on` knows by name: a small cloud machine, a workstation, a large server."""


def parse_machine(text: str, *, here: Machine | None = None) -> Machine:
    """Return the machine that `--on` describes, such as "ram=32GiB,vram=16GiB,disk=250GiB,cpus=8".

    A name of `PRESETS` stands for a whole machine, of which other values may follow, as in
    "large,disk=500GiB". What `text` does not name is taken from `here` (default: this machine).
    "vram" describes one GPU; "vram=0" means none. A "disk" is a whole one, so the installation must
    fit on it, too.

    Raises:
        UsageError: a name is unknown or repeated, a value is invalid, or `text` is empty.
    """
    given = _parse_assignments(text)
    base = here if here is not None else detect_machine(Path.cwd())
    vram = given.get("vram", 0)
    described = (Gpu(vram, vram),) if vram else ()
    return replace(
        base,
        ram_bytes=given.get("ram", base.ram_bytes),
        ram_available_bytes=given.get("ram", base.ram_available_bytes),
        reservable_bytes=None if "ram" in given else base.reservable_bytes,
        gpus=described if "vram" in given else base.gpus,
        disk_free_bytes=given.get("disk", base.disk_free_bytes),
        installation_bytes=installed_bytes() if "disk" in given else base.installation_bytes,
        cpus=given.get("cpus", base.cpus),
    )


_EXAMPLE = "write for example ram=32GiB,vram=16GiB,disk=250GiB,cpus=8, or large,disk=500GiB"


def _parse_assignments(text: str) -> dict[str, int]:
    parts = [part for piece in text.split(",") if (part := piece.strip())]
    presets = [part for part in parts if part in PRESETS]
    if len(presets) > 1:
        raise UsageError(f"--on: {' and '.join(presets)} are two machines in {text!r}; {_EXAMPLE}")
    given: dict[str, int] = {}
    for part in parts:
        if part not in PRESETS:
            name, value = _assignment(part)
            if name in given:
                raise UsageError(f"--on: {name} is given twice in {text!r}; {_EXAMPLE}")
            given[name] = value
    if not parts:
        raise UsageError(f"--on: nothing in {text!r} describes a machine; {_EXAMPLE}")
    return (_parse_assignments(PRESETS[presets[0]]) if presets else {}) | given


def _assignment(part: str) -> tuple[str, int]:
    name, equals, text = (piece.strip() for piece in part.partition("="))
    if not equals or name not in {"ram", "vram", "disk", "cpus"}:
        raise UsageError(
            f"--on: {part!r} is not ram=, vram=, disk= or cpus=, and not one of "
            f"{', '.join(PRESETS)}; {_EXAMPLE}"
        )
    if name == "cpus":
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"--on: cpus must be a whole number, found {text!r}")
        value = int(text)
    else:
        value = parse_bytes(text)
        if 0 < value < MIB:
            raise UsageError(f"--on: {name}={text} is {value} bytes; write {name}={text}GiB")
    if value == 0 and name != "vram":
        raise UsageError(f"--on: {name} must be more than 0, found {text!r}; {_EXAMPLE}")
    return name, value


def effective_ram_bytes(root: Path = _ROOT) -> tuple[int, int]:
    """Return the (total, available) bytes of memory of the machine, or of a cgroup if it has less.

    A cgroup has available its limit minus the memory in use that cannot be reclaimed. Inactive page
    cache counts as free, as it does in MemAvailable.
    """
    meminfo = read_table(root / "proc/meminfo")
    if "MemTotal" in meminfo and "MemAvailable" in meminfo:
        total = meminfo["MemTotal"] * KIB
        available = meminfo["MemAvailable"] * KIB
    else:
        memory = psutil.virtual_memory()
        total = int(memory.total)
        available = int(memory.available)
    for limit, used in _cgroup_memory(root):
        total = min(total, limit)
        available = min(available, max(0, limit - used))
    return total, available


def _cgroup_memory(root: Path) -> Iterator[tuple[int, int]]:
    """Yield (limit, unreclaimable use) for each cgroup of this process that has a memory limit."""
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
    """Return the number of CPUs that this process may use.

    That is its affinity, or a cgroup's quota if that is less. `GAME_RL_CPUS` overrides both;
    computations then round as on a machine with so many CPUs.

    Raises:
        UsageError: `GAME_RL_CPUS` is not a number.
    """
    if (chosen := os.environ.get(CPUS_VARIABLE)) is not None:
        if not (chosen.isascii() and chosen.isdigit() and int(chosen)):
            raise UsageError(
                f"{CPUS_VARIABLE} is {chosen!r}, not a number of CPUs; set it to one or unset it"
            )
        return int(chosen)
    cpus = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    for folder in _cgroup_folders(root, "cpu"):
        quota, period = _cpu_quota(folder)
        if quota is not None and period:
            cpus = min(cpus, -(-quota // period))  # half a CPU still runs one process
    return max(1, cpus)


def interface_addresses() -> list[str]:
    """Return the numbers under which other machines may reach this one, IPv4 first."""
    found = {
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    numbers = [ipaddress.ip_address(each.partition("%")[0]) for each in found]
    reached = [each for each in numbers if not (each.is_loopback or each.is_link_local)]
    return [str(each) for each in sorted(reached, key=lambda each: (each.version, int(each)))]


def own_cores(root: Path = _ROOT) -> list[int]:
    """Return the numbers of the CPUs that this process may use; empty if it has to share them.

    It is empty where a cgroup's quota is less than the CPUs of the affinity, where `GAME_RL_CPUS`
    is set, and where the system does not report the affinity.
    """
    if CPUS_VARIABLE in os.environ:
        return []
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores if len(cores) == effective_cpus(root) else []


_MULTIPLYING = {"avx512_bf16", "amx_bf16"}
_CONVERTING = {"avx512bw", "avx512vl", "avx512dq"}  # all of them, see oneDNN's mayiuse
_ONEDNN_VARIABLE = "ONEDNN_MAX_CPU_ISA"  # limits the instructions that oneDNN uses


def bf16_way(root: Path = _ROOT) -> Bf16Way:
    """Return how torch multiplies bfloat16 on this CPU.

    In bfloat16 NatureCNN learns 1.6 times as fast with AVX512-BF16, and twice as fast with AMX.
    Without such instructions it learns more slowly than in float32.
    """
    found = re.search(r"^flags\s*:(.*)$", read_text(root / "proc/cpuinfo"), re.MULTILINE)
    flags = set() if found is None else set(found[1].split())
    limit = os.environ.get(_ONEDNN_VARIABLE, "ALL").upper()
    if limit.startswith(("SSE", "AVX2")) or limit == "AVX":
        return "unfolded"
    is_limited = limit.startswith("AVX512") and not limit.endswith(("BF16", "FP16", "AMX"))
    if not is_limited and not flags.isdisjoint(_MULTIPLYING):
        return "native"
    return "converted" if flags >= _CONVERTING else "unfolded"


def cpu_has_bf16(root: Path = _ROOT) -> bool:
    """Whether the CPU has instructions that multiply bfloat16: AVX512-BF16 or AMX."""
    return bf16_way(root) == "native"


def processor_name(root: Path = _ROOT) -> str:
    """Return the maker's name of the CPU's model; "" if the system does not report it."""
    found = re.search(r"^model name\s*:(.*)$", read_text(root / "proc/cpuinfo"), re.MULTILINE)
    return platform.processor() if found is None else found[1].strip()


def _cpu_quota(folder: Path) -> tuple[int | None, int | None]:
    words = read_text(folder / "cpu.max").split()
    if len(words) == 2:
        return (int(words[0]) if words[0].isdigit() else None), int(words[1])
    return read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us")


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the process's cgroup for `controller`, then each of its parents, in v2 and in v1.

    Inside a container the path of /proc/self/cgroup may name folders that only the host can see.
    Those are skipped, and the container's own root comes last.
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


@functools.cache
def installed_bytes() -> int:
    """Return what the packages of this Python take on the disk."""
    folders = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    seen: dict[tuple[int, int], int] = {}
    for folder in folders:
        for path in folder.rglob("*"):
            with suppress(OSError):
                status = path.lstat()
                n_blocks = getattr(status, "st_blocks", None)  # Windows has none
                n_bytes = status.st_size if n_blocks is None else 512 * n_blocks
                seen[status.st_dev, status.st_ino] = n_bytes
    return sum(seen.values())


def is_same_disk(one: Path, other: Path) -> bool:
    """Whether both are on the same file system; True if that cannot be determined."""
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return True


def disk_free_bytes(path: Path) -> int:
    """Return this user's free bytes on the file system of `path`, which need not exist yet."""
    return shutil.disk_usage(nearest_folder(path.absolute())).free


def nearest_folder(path: Path) -> Path:
    """Return the absolute `path`, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def cpu_percent() -> float:
    """Return the load of all CPUs since the last call, 0..100; 0 at the first call."""
    return psutil.cpu_percent(interval=None)


def cache_bytes_per_cpu(root: Path = _ROOT) -> int:
    """Return a CPU's share of the cache level in which that share is largest.

    CPU 0 stands for all. A cache is divided by the number of CPUs that the kernel lists for it,
    even where a container may use only some of them. `USUAL_CACHE_BYTES` if it cannot be read.
    """
    folders = (root / "sys/devices/system/cpu/cpu0/cache").glob("index*")
    return max(map(_share_bytes, folders), default=0) or USUAL_CACHE_BYTES


def _share_bytes(cache: Path) -> int:
    """Return a CPU's share of this cache; 0 if it holds instructions only or cannot be read."""
    size = read_text(cache / "size").strip()
    cpus = _n_listed(read_text(cache / "shared_cpu_list").strip())
    is_for_data = read_text(cache / "type").strip() in {"Data", "Unified"}
    if not (is_for_data and cpus and size[:-1].isdigit() and size[-1] in "KMG"):
        return 0
    return parse_bytes(f"{size}iB") // cpus


def _n_listed(cpus: str) -> int:
    """Count the numbers in a list such as "0-3,8"; 0 if it is no such list."""
    count = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            return 0
        count += int(last or first) - int(first) + 1
    return count


def read_text(path: Path) -> str:
    """Return the file's text; "" if it does not exist, cannot be read, or its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None  # "max" and "-1" mean no limit


def read_table(path: Path) -> dict[str, int]:
    """Return the first number of each "name: number ..." line of meminfo, memory.stat or smaps."""
    table = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table
