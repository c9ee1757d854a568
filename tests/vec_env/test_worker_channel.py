"""Both forms of the channel between the training and a worker."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import pytest

from game_rl.vec_env.worker_protocol import ConnectionChannel, SocketChannel

KINDS = [SocketChannel, ConnectionChannel]
Kind = type[SocketChannel | ConnectionChannel]


@pytest.fixture
def pipe() -> Iterator[tuple[Any, Any]]:
    ends = multiprocessing.Pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            end.close()


Pipe = tuple["Connection[Any, Any]", "Connection[Any, Any]"]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_arrive_whole_and_in_order(kind: Kind, pipe: Pipe) -> None:
    ours, theirs = (kind(end) for end in pipe)
    messages = [b"", b"x", b"", b"\0" * 9, bytes(range(256)) * 20_000]  # the last one fills a pipe
    sender = threading.Thread(target=lambda: [ours.send(message) for message in messages])
    sender.start()
    assert [theirs.receive(60) for _ in messages] == messages
    sender.join()
    theirs.send(b"")
    assert ours.is_ready(None)
    assert ours.take() == b""


@pytest.mark.parametrize("kind", KINDS)
def test_it_waits_for_a_message_no_longer_than_told(kind: Kind, pipe: Pipe) -> None:
    ours, theirs = (kind(end) for end in pipe)
    assert not ours.is_ready()
    began = time.monotonic()
    assert ours.receive(0.05) is None
    assert time.monotonic() - began >= 0.049
    theirs.send(b"x")
    assert ours.is_ready()
    assert ours.is_ready()
    assert ours.receive(0) == b"x"


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_other_side_comes_after_its_messages(kind: Kind, pipe: Pipe) -> None:
    ours, theirs = (kind(end) for end in pipe)
    theirs.send(b"last")
    pipe[1].close()
    assert ours.receive(60) == b"last"
    with pytest.raises((EOFError, OSError)):
        ours.receive(60)
    with pytest.raises((EOFError, OSError)):
        ours.take()
    with pytest.raises(OSError):  # noqa: PT011 - EPIPE or ECONNRESET
        ours.send(b"x")


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_process_is_noticed_while_its_pipe_is_open(kind: Kind, pipe: Pipe) -> None:
    ended, alive = multiprocessing.Pipe(duplex=False)  # a sentinel is what can be read at the end
    ours, theirs = kind(pipe[0], ended.fileno()), kind(pipe[1])
    theirs.send(b"last")
    alive.close()
    assert ours.receive(60) == b"last"
    with pytest.raises(EOFError):
        ours.receive(60)
    ended.close()
