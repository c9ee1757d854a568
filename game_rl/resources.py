"""What this machine, its container and this process tree have and use.

The only module that reads /proc, cgroups, psutil, nvidia-smi or a file system's free space.
`root` parameters exist so that a test can lay out a /proc and a /sys of its own.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from game_rl.errors import UsageError

KIB, MIB, GIB = 2**10, 2**20, 2**30

_ROOT = Path("/")
_NVIDIA_SMI_TIMEOUT_S = 5.0
_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}IB": 2 ** (10 * _power), f"{_letter}B": 10 ** (3 * _power)}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a run may use; `vram_*` is None where torch has no GPU.

    ram_bytes: the memory of the machine, or of the container if that is less.
    ram_available_bytes: what of it is free for a new run.
    vram_available_bytes: free memory of the first visible GPU that torch can use.
    disk_free_bytes: free on the file system that will hold the run directory.
    cpu_has_bf16: the CPU multiplies matrices of bfloat16 faster than those of float32.
    """

    ram_bytes: int
    ram_available_bytes: int
    vram_bytes: int | None
    vram_available_bytes: int | None
    disk_free_bytes: int
    cpus: int
    cpu_has_bf16: bool


def detect_machine(run_dir: Path) -> Machine:
    """The machine as this process may use it: container limits and affinity included."""
    total, available = effective_ram_bytes()
    vram = gpu_memory_bytes() if _torch_can_use_gpus() else None
    return Machine(
        ram_bytes=total,
        ram_available_bytes=available,
        vram_bytes=vram[0] if vram else None,
        vram_available_bytes=vram[1] if vram else None,
        disk_free_bytes=disk_free_bytes(run_dir),
        cpus=effective_cpus(),
        cpu_has_bf16=cpu_has_bf16(),
    )


def parse_machine(text: str, *, here: Machine | None = None) -> Machine:
    """The machine that `--on` describes, such as "ram=32GiB,vram=16GiB,disk=250GiB,cpus=8".

    What `text` does not name is as on `here` (default: this machine); "vram=0" means no GPU.

    Raises:
        UsageError: an unknown or repeated name, a size without a meaning, nothing at all.
    """
    given = _parse_assignments(text)
    base = here if here is not None else detect_machine(Path.cwd())
    vram = given.get("vram", base.vram_bytes) or None
    return Machine(
        ram_bytes=given.get("ram", base.ram_bytes),
        ram_available_bytes=given.get("ram", base.ram_available_bytes),
        vram_bytes=vram,
        vram_available_bytes=vram if "vram" in given else base.vram_available_bytes,
        disk_free_bytes=given.get("disk", base.disk_free_bytes),
        cpus=given.get("cpus", base.cpus),
        cpu_has_bf16=base.cpu_has_bf16,
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


def parse_bytes(text: str) -> int:
    """Bytes of "32GiB", "1.5 GB" or "4096"; KiB..TiB are powers of 1024, KB..TB of 1000.

    Raises:
        UsageError: not a number with one of these units.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _UNITS.get(match[2].upper()) if match else None
    if match is None or factor is None:
        raise UsageError(f"{text!r} is not a size; write a number and a unit, such as 32GiB")
    return round(float(match[1]) * factor)


def format_bytes(size: int) -> str:
    """A size for people: "4.22 GiB", "90.0 MiB", "512 B"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size) >= unit:
            value = size / unit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """For people, in two units: "5 min 20 s", "3 h 10 min"; "4.2 s" below ten seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for size, name, small, small_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        # rounded in the smaller unit first, so that it never says "1 h 60 min"
        count, rest = divmod(round(seconds / small), size // small)
        if count:
            return f"{count} {name} {rest} {small_name}" if rest else f"{count} {name}"
    return f"{seconds:.0f} s"


# ---- limits --------------------------------------------------------------------------------------


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
    meminfo = _read_table(root / "proc/meminfo")
    if "MemTotal" in meminfo and "MemAvailable" in meminfo:
        return meminfo["MemTotal"] * KIB, meminfo["MemAvailable"] * KIB
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)


def _cgroup_memory(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, unreclaimable use) of each cgroup above this process that has a memory limit."""
    for folder in _cgroup_folders(root, "memory"):
        limit = _read_number(folder / "memory.max")
        names = ("memory.current", "inactive_file")
        if limit is None:
            limit = _read_number(folder / "memory.limit_in_bytes")
            names = ("memory.usage_in_bytes", "total_inactive_file")
        used = _read_number(folder / names[0])
        if limit is not None and used is not None:
            cache = _read_table(folder / "memory.stat").get(names[1], 0)
            yield limit, max(0, used - cache)


def effective_cpus(root: Path = _ROOT) -> int:
    """CPUs that this process may use: its affinity, or a cgroup's quota if that is less."""
    cpus = _affinity_cpus()
    for folder in _cgroup_folders(root, "cpu"):
        quota, period = _cpu_quota(folder)
        if quota is not None and period:
            cpus = min(cpus, -(-quota // period))  # half a CPU still runs one process
    return max(1, cpus)


def own_cores(root: Path = _ROOT) -> list[int]:
    """The CPUs that this process may use, by number; none where they are not its own.

    That is so where a cgroup's quota is less than they are, and where the system does not say.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores if len(cores) == effective_cpus(root) else []


def cpu_has_bf16(root: Path = _ROOT) -> bool:
    """Whether the CPU multiplies bfloat16 by itself: AVX512-BF16, or the tiles of AMX besides.

    NatureCNN learns 1.6 times as fast in it with the former, twice with the latter.
    """
    flags = re.search(r"^flags\s*:(.*)$", _read_text(root / "proc/cpuinfo"), re.MULTILINE)
    return flags is not None and not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags[1].split())


def _affinity_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_quota(folder: Path) -> tuple[int | None, int | None]:
    words = _read_text(folder / "cpu.max").split()
    if len(words) == 2:
        return (int(words[0]) if words[0].isdigit() else None), int(words[1])
    return _read_number(folder / "cpu.cfs_quota_us"), _read_number(folder / "cpu.cfs_period_us")


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """The process's cgroup for `controller`, then each of its parents, in v2 and in v1.

    Inside a container the path of /proc/self/cgroup may name folders that only the host can see;
    those are skipped, and the container's own root comes last.
    """
    mounts = root / "sys/fs/cgroup"
    for line in _read_text(root / "proc/self/cgroup").splitlines():
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


def gpu_memory_bytes() -> tuple[int, int] | None:
    """(total, free) bytes of the first GPU that CUDA would show us, without importing torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in {"", "-1"} or shutil.which("nvidia-smi") is None:
        return None
    query = ["--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--id={first}", *query],
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_TIMEOUT_S,
            check=True,
        ).stdout
        total, free = (int(number) * MIB for number in answer.splitlines()[0].split(","))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None  # a driver that does not answer is no GPU to plan with
    return total, free


def cpu_percent() -> float:
    """Load of all CPUs since the last call, 0..100; 0 at the first call."""
    return psutil.cpu_percent(interval=None)


def _torch_can_use_gpus() -> bool:
    """False for the CPU build of torch, whose version ends in "+cpu"; told without importing it."""
    try:
        return not metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False


# ---- use -----------------------------------------------------------------------------------------


def process_tree_pss_bytes(pid: int | None = None, *, root: Path = _ROOT) -> int:
    """Summed proportional set size of process `pid` (default: this one) and its descendants.

    A page that n processes share counts 1/n in each, so the sum is the memory that the tree
    really takes. Where the kernel has no smaps_rollup (macOS, Windows, Linux < 4.14) a process
    counts with its unique set size instead, which leaves shared pages out.
    """
    return process_tree_memory(os.getpid() if pid is None else pid, root=root)[0]


def process_tree_memory(pid: int, *, root: Path = _ROOT) -> tuple[int, int]:
    """`process_tree_pss_bytes`, and what of process `pid` was resident at the same moment.

    Resident is 0 where the kernel has no smaps_rollup.
    """
    members = [_pss_and_resident(member, root) for member in _process_tree(pid, root)]
    return sum(pss for pss, _ in members), members[0][1]


def _pss_and_resident(pid: int, root: Path) -> tuple[int, int]:
    rollup = _read_table(root / "proc" / str(pid) / "smaps_rollup")
    if "Pss" in rollup:
        return rollup["Pss"] * KIB, rollup.get("Rss", 0) * KIB
    if (root / "proc/self/smaps_rollup").exists():
        return 0, 0  # it ended while we looked, is a zombie, or belongs to someone else
    try:
        return int(psutil.Process(pid).memory_full_info().uss), 0
    except psutil.Error:
        return 0, 0


def _process_tree(pid: int, root: Path) -> list[int]:
    parents = _parents(root)
    tree = [pid]
    for member in tree:  # grows while we walk it: breadth first
        tree += [child for child, parent in parents.items() if parent == member]
    return tree


def _parents(root: Path) -> dict[int, int]:
    proc = root / "proc"
    if not (proc / "self/stat").exists():
        return {p.pid: p.ppid() for p in psutil.process_iter()}
    parents: dict[int, int] = {}
    for entry in os.listdir(proc):  # noqa: PTH208 - called four times a second; no Path objects
        # "pid (name) state ppid ...", and the name may hold spaces and parentheses
        if entry.isdigit() and (stat := _read_text(proc / entry / "stat")):
            parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def resident_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of a process now and at its highest; zeros where the kernel does not say."""
    status = _read_table(_ROOT / "proc" / str(pid) / "status")
    return status.get("VmRSS", 0) * KIB, status.get("VmHWM", 0) * KIB


# ---- reading -------------------------------------------------------------------------------------


def _read_text(path: Path) -> str:
    """The file's text; empty when it is not there, ended, or is not ours to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_number(path: Path) -> int | None:
    text = _read_text(path).strip()
    return int(text) if text.isdigit() else None  # "max" and "-1" mean no limit


def _read_table(path: Path) -> dict[str, int]:
    """First number of each "name: number ..." line, as meminfo, memory.stat and smaps have."""
    table = {}
    for line in _read_text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table
