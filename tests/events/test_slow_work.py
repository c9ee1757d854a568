"""Saying what takes long."""

import threading
import time

import pytest

from game_rl.events import Event, StillWorking
from game_rl.events.event_log import EventLog
from game_rl.events.slow_work import telling_if_slow


def test_what_is_fast_is_not_told() -> None:
    told: list[float] = []
    with telling_if_slow(told.append):
        pass
    assert not told


def test_what_is_slow_is_told_until_it_is_over_and_never_after() -> None:
    told: list[float] = []
    thirdly = threading.Event()

    def tell(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            thirdly.set()

    with telling_if_slow(tell, slow_after_s=0.02, again_after_s=0.01):
        assert thirdly.wait(30)
    n_told = len(told)
    time.sleep(0.05)
    assert len(told) == n_told >= 3
    assert told == sorted(told)
    assert told[0] >= 0.02


def test_an_error_in_the_block_ends_the_telling_and_is_raised() -> None:
    threads = threading.active_count()
    with pytest.raises(OSError, match="full"), telling_if_slow(lambda _: None):
        raise OSError("full")
    assert threading.active_count() == threads


def test_a_log_tells_its_listeners_and_keeps_nothing() -> None:
    heard: list[Event] = []
    events = EventLog(listeners=[heard.append])
    with events.telling_if_slow("opening the Lake"):
        pass
    assert not heard
    assert not StillWorking.is_kept
