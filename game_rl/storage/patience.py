"""Retrying while storage fails, for callers that have to wait for it."""

import time
from collections.abc import Callable
from typing import TypeVar

from game_rl.storage.faults import StoreFault

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0

Answer = TypeVar("Answer")


def patiently(
    ask: Callable[[], Answer],
    patience_s: float,
    *,
    tell: Callable[[StoreFault], None] = lambda _: None,
) -> Answer:
    """Return the result of `ask`, which is retried after growing pauses while storage fails.

    Args:
        patience_s: time after which the last fault is raised.
        tell: called with the first fault.
    """
    deadline_s, pause_s = time.monotonic() + patience_s, _FIRST_PAUSE_S
    while True:
        try:
            return ask()
        except StoreFault as fault:
            if time.monotonic() + pause_s > deadline_s:
                raise
            if pause_s == _FIRST_PAUSE_S:
                tell(fault)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
