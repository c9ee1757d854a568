"""The limit of the bytes per second, with a clock that only sleeping moves."""

import time
from dataclasses import dataclass

import pytest

from game_rl.storage.blobs import RateLimit

CHUNK = 100_000


@dataclass
class Clock:
    now_s: float = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now_s)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def seconds_for(limit: RateLimit, clock: Clock, chunks: int) -> float:
    began_s = clock.now_s
    assert list(limit.slowed(bytes(CHUNK) for _ in range(chunks))) == [bytes(CHUNK)] * chunks
    return clock.now_s - began_s


def test_bytes_take_as_long_as_the_limit_says(clock: Clock) -> None:
    assert seconds_for(RateLimit(2.0), clock, 100) == pytest.approx(5.0)  # 10 MB at 2 MB/s


def test_a_pause_saves_up_a_quarter_of_a_second_and_no_more(clock: Clock) -> None:
    limit = RateLimit(1.0)
    for idle_s, saved_s in ((0.1, 0.1), (60.0, 0.25)):
        clock.sleep(idle_s)
        assert seconds_for(limit, clock, 50) == pytest.approx(5.0 - saved_s)


def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    assert seconds_for(RateLimit(None), clock, 100) == 0.0
