"""Memory of processes: measured, and what the C library keeps of it.

The `root` parameters exist so that tests can create their own /proc.
"""

import ctypes
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from game_rl.system.machine import read_table, read_text
from game_rl.system.units import KIB, MIB

_ROOT = Path("/")


def process_tree_memory(pid: int, *, root: Path = _ROOT) -> tuple[int, int]:
    """Return the memory of process `pid` and its descendants, and its own resident memory.

    The first is their summed proportional set size: a page that n processes share counts 1/n in
    each, so the sum is the memory that the tree really takes. Pages of files, such as libraries,
    may be shared with other programs, whose part would be missing. So together they count at least
    as much as the process has mapped that maps most of them; without other programs, that is never
    more than their sum. Where the kernel has no smaps_rollup (macOS, Windows, Linux < 4.14), each
    process counts with its unique set size, and pages that processes share count together as much
    as that process has resident that has most of them.

    Its resident memory is of the same moment, and 0 where the kernel has no smaps_rollup.
    """
    parents = _parents(root)
    tree = [pid]
    for member in tree:  # breadth first: the list grows during the iteration
        tree += [child for child, parent in parents.items() if parent == member]
    members = [_memory_of(member, root) for member in tree]
    files = max(sum(each.file_pss for each in members), *(each.file_rss for each in members))
    return sum(each.pss - each.file_pss for each in members) + files, members[0].resident


@dataclass(frozen=True)
class _Memory:
    """Bytes of a process; those of files are 0 where the kernel does not report them (< 5.3).

    Without smaps_rollup, `pss` has unshared pages alone, and `file_rss` all shared ones.
    """

    pss: int
    resident: int = 0
    file_pss: int = 0
    file_rss: int = 0


def _memory_of(pid: int, root: Path) -> _Memory:
    rollup = read_table(root / "proc" / str(pid) / "smaps_rollup")
    if "Pss" in rollup:
        files = read_table(root / "proc" / str(pid) / "status") if "Pss_File" in rollup else {}
        return _Memory(
            pss=rollup["Pss"] * KIB,
            resident=rollup.get("Rss", 0) * KIB,
            file_pss=rollup.get("Pss_File", 0) * KIB,
            file_rss=files.get("RssFile", 0) * KIB,
        )
    if (root / "proc/self/smaps_rollup").exists():
        return _Memory(0)  # it ended meanwhile, is a zombie, or belongs to another user
    try:
        info = psutil.Process(pid).memory_full_info()
        return _Memory(pss=int(info.uss), file_rss=max(int(info.rss) - int(info.uss), 0))
    except psutil.Error:
        return _Memory(0)


def _parents(root: Path) -> dict[int, int]:
    proc = root / "proc"
    if not (proc / "self/stat").exists():
        # by `info`, since it leaves out processes that end meanwhile
        return {p.pid: p.info["ppid"] for p in psutil.process_iter(["ppid"])}
    parents: dict[int, int] = {}
    for entry in os.listdir(proc):  # noqa: PTH208 - called four times a second; no Path objects
        # "pid (name) state ppid ...", where the name may contain spaces and parentheses
        if entry.isdigit() and (stat := read_text(proc / entry / "stat")):
            parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def resident_bytes(pid: int) -> tuple[int, int]:
    """Return a process's resident memory and its peak; zeros if the kernel does not report them."""
    status = read_table(_ROOT / "proc" / str(pid) / "status")
    return status.get("VmRSS", 0) * KIB, status.get("VmHWM", 0) * KIB


class PssSampler:
    """Samples the process tree's memory in a thread and keeps the highest sum.

    A sample costs CPU time that grows with the memory, because the kernel walks the page tables.
    The thread sleeps at least 50 times as long as the CPU time of the last sample, so it takes less
    than 2 % of one CPU.

    A peak of the process at the root of the tree between two samples is not missed. If its
    high-water mark rose (VmHWM, Linux only), the sum is computed with that mark, and with the other
    processes as they are at the sample.

    Attributes:
        peak_bytes: the highest sum so far; 0 before the first sample.
        last_bytes: the sum of the last sample.
    """

    _REST = 50

    def __init__(self, pid: int | None = None, *, interval_s: float = 0.25) -> None:
        self._pid = os.getpid() if pid is None else pid
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.peak_bytes = 0
        self.last_bytes = 0
        self._highest_root_bytes = 0

    def start(self) -> None:
        self._stop.clear()
        _, self._highest_root_bytes = resident_bytes(self._pid)
        self._thread = threading.Thread(target=self._watch, name="pss-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Take a last sample, end the thread and return the peak; may be called twice."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            self._sample()
        return self.peak_bytes

    def _sample(self) -> None:
        # resident memory is of the same moment: read a little later, it may be much less
        self.last_bytes, resident = process_tree_memory(self._pid)
        _, highest = resident_bytes(self._pid)
        rose = resident and highest > self._highest_root_bytes
        between = max(highest - resident, 0) if rose else 0
        self._highest_root_bytes = highest
        self.peak_bytes = max(self.peak_bytes, self.last_bytes + between)

    def _watch(self) -> None:
        cost_s = 0.0
        while not self._stop.wait(max(self._interval_s, self._REST * cost_s)):
            began = time.thread_time()  # wall time would include waiting for a busy CPU
            self._sample()
            cost_s = time.thread_time() - began

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


# Parameters of mallopt(3). The threshold is the largest that glibc accepts on 64 bits.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_THRESHOLD = 32 * MIB
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Keep freed blocks below 32 MiB in the process, ready for reuse.

    By default glibc adapts its thresholds to the blocks that are freed, but it returns the end of
    its heap to the system whenever that is free, and requests it again in the next gradient step.
    That costs up to 14,000 page faults a step. The peak of the process's memory is the same. The
    function has no effect without glibc.
    """
    libc = None if os.name == "nt" else ctypes.CDLL(None)
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
