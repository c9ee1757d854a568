import socket
from collections.abc import Iterator

import pytest

from game_rl.errors import ExperimentError
from game_rl.executors.ray import Head


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def check_for(head: Head, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now_s += 1
        head.check()


def test_a_head_that_falls_silent_is_lost_for_good(listener: socket.socket) -> None:
    clock = Clock()
    head = Head(f"127.0.0.1:{listener.getsockname()[1]}", clock=clock)
    check_for(head, clock, 60)
    listener.close()
    check_for(head, clock, 25)
    assert not head.is_lost
    with pytest.raises(ExperimentError, match=r"has not answered for 30 s.*--resume"):
        check_for(head, clock, 15)
    assert head.is_lost
    with pytest.raises(ExperimentError):  # while others are waited for
        head.check()


def test_a_short_silence_is_forgiven(listener: socket.socket) -> None:
    clock, address = Clock(), listener.getsockname()
    head = Head(f"127.0.0.1:{address[1]}", clock=clock)
    for _ in range(3):
        listener.close()
        check_for(head, clock, 20)
        listener = socket.create_server(address)
        check_for(head, clock, 10)
    listener.close()
