import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from game_rl.pss_sampler import PssSampler
from game_rl.resources import MIB, process_tree_pss_bytes


def test_the_sampler_knows_of_a_peak_between_two_samples() -> None:
    size = 400_000_000
    Path("/proc/self/clear_refs").write_text("5")  # forget this process's earlier peaks
    sampler = PssSampler(interval_s=3_600)  # no sample until it is stopped
    sampler.start()
    before = process_tree_pss_bytes()
    block = bytearray(size)
    del block
    assert size * 0.95 < sampler.stop() - before < size * 1.1
    assert sampler.last_bytes < before + size // 2


def test_the_sampler_sees_the_peak_and_keeps_it_after_the_memory_is_freed() -> None:
    sampler = PssSampler(interval_s=0.001)
    sampler.start()
    block = bytearray(b"x" * (64 * MIB))
    while sampler.last_bytes < len(block):
        pass
    del block
    peak = sampler.stop()
    assert peak >= 64 * MIB
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


def test_a_sample_that_waited_for_the_cpu_is_followed_by_no_longer_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow_sample(_: int) -> tuple[int, int]:
        time.sleep(0.1)  # as on a machine that does something else meanwhile
        return 1, 1

    monkeypatch.setattr("game_rl.pss_sampler.process_tree_memory", slow_sample)
    rests = CountedRests()
    threads = SimpleNamespace(Event=lambda: rests, Thread=threading.Thread)
    monkeypatch.setattr("game_rl.pss_sampler.threading", threads)
    with PssSampler(interval_s=0.25):
        pass
    assert rests.seconds == [0.25, 0.25, 0.25]
