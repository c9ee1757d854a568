"""The ends of the pipe between the training and a worker.

A message is written to the pipe's socket, preceded by its length. `multiprocessing.Connection` does
the same but takes three times as long; it is what is used where sockets cannot be polled.
"""

import os
import struct
import time
from multiprocessing.connection import Connection, wait

from game_rl.system.processes import CAN_POLL, poll_of

_LENGTH = struct.Struct("=Q")


class SocketChannel:
    """One end of a pipe that is a socket.

    Args:
        process: sentinel of the process at the other end; without one, the end of that process is
            noticed by the end of its messages.
    """

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        self._descriptor = connection.fileno()
        self._poll = poll_of(self._descriptor, *(() if process is None else (process,)))

    def send(self, message: bytes) -> None:
        """Send a message; raise OSError if the other end is closed."""
        unsent = _LENGTH.pack(len(message)) + message
        while unsent:
            unsent = unsent[os.write(self._descriptor, unsent) :]

    def is_ready(self, timeout_s: float | None = 0) -> bool:
        """Whether there is a message, or the other process has ended; None waits without limit."""
        return bool(self._poll.poll(None if timeout_s is None else timeout_s * 1000))

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next message, or None if there is none in time.

        Raises:
            EOFError, OSError: the other process has ended, and all its messages have been received.
        """
        events = self._poll.poll(timeout_s * 1000)  # in the order of `poll_of`
        if not events:
            return None
        if events[0][0] != self._descriptor:
            raise EOFError
        return self.take()

    def take(self) -> bytes:
        """Wait for a message; raise OSError or EOFError if the other end is closed."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length) if length else b""

    def _read(self, n_bytes: int) -> bytes:
        parts = []
        while n_bytes:
            part = os.read(self._descriptor, n_bytes)
            if not part:
                raise EOFError
            parts.append(part)
            n_bytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class ConnectionChannel:
    """A `SocketChannel` for every system."""

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        self._connection = connection
        self._awaited: list[Connection | int] = [connection]
        if process is not None:
            self._awaited.append(process)

    def send(self, message: bytes) -> None:
        self._connection.send_bytes(message)

    def is_ready(self, timeout_s: float | None = 0) -> bool:
        return bool(self._wait(timeout_s))

    def receive(self, timeout_s: float) -> bytes | None:
        ready = self._wait(timeout_s)
        if not ready:
            return None
        if self._connection not in ready:
            raise EOFError
        return self.take()

    def take(self) -> bytes:
        return self._connection.recv_bytes()

    def _wait(self, timeout_s: float | None) -> list[object]:
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if end_s is None else max(end_s - time.monotonic(), 0)
            try:
                return list(wait(self._awaited, left_s))
            except InterruptedError:  # Ctrl-C on Windows; its handler has been called
                continue


Channel = SocketChannel | ConnectionChannel


def channel_of(connection: Connection, process: int | None = None) -> Channel:
    """Return the channel of a duplex pipe; both ends must use this."""
    return (SocketChannel if CAN_POLL else ConnectionChannel)(connection, process)
