"""Page faults of a process that frees and takes again what a gradient step needs."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from game_rl.system.process_memory import PssSampler, process_tree_memory
from game_rl.system.units import MIB


class Holder:
    """A fresh interpreter that takes and frees memory when it is told to."""

    _CODE = """
import sys
block = b""
for line in sys.stdin:
    block = bytearray(int(line))  # the old one goes when the new one is there
    print("done", flush=True)
"""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.pid = self._process.pid
        self.hold(1)

    def hold(self, size: int) -> None:
        assert self._process.stdin
        assert self._process.stdout
        print(size, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def holder() -> Iterator[Holder]:
    process = Holder()
    yield process
    process.end()


def test_the_sampler_knows_of_a_peak_between_two_samples(holder: Holder) -> None:
    size = 400_000_000
    sampler = PssSampler(holder.pid, interval_s=3_600)  # no sample until it is stopped
    sampler.start()
    before = process_tree_memory(holder.pid)[0]
    holder.hold(size)
    holder.hold(1)
    assert size * 0.95 < sampler.stop() - before < size * 1.1
    assert sampler.last_bytes < before + size // 2


def test_the_sampler_sees_the_peak_and_keeps_it_after_the_memory_is_freed(holder: Holder) -> None:
    size = 64 * MIB
    sampler = PssSampler(holder.pid, interval_s=0.001)
    sampler.start()
    holder.hold(size)
    while sampler.last_bytes < size:
        pass
    holder.hold(1)
    peak = sampler.stop()
    assert peak >= size
    assert sampler.last_bytes < peak
    assert sampler.stop() == peak


class CountedRests(threading.Event):
    """Says after three rests, none of which takes time, that the sampler was stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return len(self.seconds) == 3


@pytest.mark.parametrize(("cpu_s", "later_rests_s"), [(0.001, 0.25), (0.1, 5.0)])
def test_rests_follow_the_cpu_time_of_a_sample_and_not_how_long_it_waited_for_the_cpu(
    monkeypatch: pytest.MonkeyPatch, cpu_s: float, later_rests_s: float
) -> None:
    clock = SimpleNamespace(cpu_s=0.0, wall_s=0.0)

    def sample(_: int) -> tuple[int, int]:
        clock.cpu_s += cpu_s
        clock.wall_s += 1.0  # as on a machine that does something else meanwhile
        return 1, 1

    rests = CountedRests()
    threads = SimpleNamespace(Event=lambda: rests, Thread=threading.Thread)
    clocks = SimpleNamespace(
        thread_time=lambda: clock.cpu_s,
        **dict.fromkeys(("perf_counter", "monotonic", "time"), lambda: clock.wall_s),
    )
    for name, value in {
        "process_tree_memory": sample,
        "threading": threads,
        "time": clocks,
    }.items():
        monkeypatch.setattr(f"game_rl.system.process_memory.{name}", value)
    with PssSampler(interval_s=0.25):
        pass
    assert rests.seconds == pytest.approx([0.25, later_rests_s, later_rests_s])


PROGRAM = """
import resource, sys
import numpy as np
from game_rl.system.process_memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def step():
    blocks = [np.ones(12_000_000, np.uint8) for _ in range(8)]
    # freed from the top of the heap down, so that all of it could be given back
    while blocks:
        blocks.pop()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(5):
    step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""


def page_faults(mode: str) -> int:
    command = [sys.executable, "-c", PROGRAM, mode]
    return int(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    assert page_faults("as it is") > 10_000
    assert page_faults("kept") < 1_000
