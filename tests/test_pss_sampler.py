from pathlib import Path

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
