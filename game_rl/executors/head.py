"""Watching the head of a cluster, by bare connections.

Calls of Ray's own wait for a head that is lost until it comes back.
"""

import socket
import time
from collections.abc import Callable

from game_rl.errors import ExperimentError

_ASKED_EVERY_S = 5.0
_ANSWER_TIMEOUT_S = 2.0
_LONGEST_SILENCE_S = 30.0


def connect(address: str, timeout_s: float) -> None:
    """Connect to HOST:PORT once; raise OSError if nothing answers there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
    except OverflowError as error:  # of the port's number
        raise OSError(str(error)) from None


class Head:
    """The head of a cluster at HOST:PORT.

    Attributes:
        is_lost: whether it was silent for too long, after which it is not asked any more.
    """

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._address, self._clock = address, clock
        self._asked_s = self._answered_s = clock()
        self.is_lost = False

    def check(self) -> None:
        """Raise ExperimentError if the head is lost; ask it at most every five seconds."""
        now_s = self._clock()
        if not self.is_lost and now_s >= self._asked_s + _ASKED_EVERY_S:
            self._asked_s = now_s
            if self._answers():
                self._answered_s = now_s
            self.is_lost = now_s > self._answered_s + _LONGEST_SILENCE_S
        if self.is_lost:
            raise ExperimentError(
                f"the head of the cluster at {self._address} has not answered for "
                f"{_LONGEST_SILENCE_S:g} s, so the cluster is lost; what was saved can be "
                "continued with --resume, on this cluster once Ray is started again, or with "
                "another executor"
            )

    def _answers(self) -> bool:
        try:
            connect(self._address, _ANSWER_TIMEOUT_S)
        except OSError:
            return False
        return True
