"""The processor's caches, as reported by the kernel."""

from pathlib import Path

from game_rl.system.proc_files import read_text
from game_rl.system.units import MIB, parse_bytes

_ROOT = Path("/")
# Used where nothing can be read: on a system without /sys, or in a container or virtual machine
# that hides it. Server and desktop processors of the last ten years have 1 to 4 MiB of L3, or of
# L2, for each CPU.
USUAL_CACHE_BYTES = 2 * MIB


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
