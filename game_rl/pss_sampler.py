"""The highest memory of a process tree, watched while it works."""

import os
import threading
import time
from typing import Self

from game_rl.resources import process_tree_memory, resident_bytes


class PssSampler:
    """Watches the process tree's memory from a thread and keeps the highest sum.

    A sample costs CPU time that grows with the memory (the kernel walks the page tables), so the
    thread sleeps at least 50 times as long as the last one took of it: below 2 % of one CPU.

    What the process at the root of the tree held between two samples is not missed: if its
    high-water mark rose (VmHWM, Linux only), the sum is taken as it was at that moment, with the
    other processes as they are now.
    """

    _REST = 50

    def __init__(self, pid: int | None = None, *, interval_s: float = 0.25) -> None:
        self._pid = os.getpid() if pid is None else pid
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._peak_bytes = 0
        self._last_bytes = 0
        self._highest_root_bytes = 0

    @property
    def peak_bytes(self) -> int:
        """The highest sum so far; 0 before the first sample."""
        return self._peak_bytes

    @property
    def last_bytes(self) -> int:
        return self._last_bytes

    def start(self) -> None:
        self._stop.clear()
        _, self._highest_root_bytes = resident_bytes(self._pid)
        self._thread = threading.Thread(target=self._watch, name="pss-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """The peak, with a last sample taken now; may be called twice."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            self._sample()
        return self._peak_bytes

    def _sample(self) -> None:
        # resident as of the same moment: read a little later, it may be much less
        self._last_bytes, resident = process_tree_memory(self._pid)
        _, highest = resident_bytes(self._pid)
        rose = resident and highest > self._highest_root_bytes
        between = max(highest - resident, 0) if rose else 0
        self._highest_root_bytes = highest
        self._peak_bytes = max(self._peak_bytes, self._last_bytes + between)

    def _watch(self) -> None:
        cost_s = 0.0
        while not self._stop.wait(max(self._interval_s, self._REST * cost_s)):
            began = time.thread_time()  # not what it waited for a busy CPU: it would oversleep
            self._sample()
            cost_s = time.thread_time() - began

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
