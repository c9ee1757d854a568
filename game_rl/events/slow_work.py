"""Saying what is going on while something takes long."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW_AFTER_S = 2.0
_AGAIN_AFTER_S = 1.0


@contextmanager
def telling_if_slow(
    tell: Callable[[float], None],
    *,
    slow_after_s: float = SLOW_AFTER_S,
    again_after_s: float = _AGAIN_AFTER_S,
) -> Iterator[None]:
    """Call `tell` while the block takes long, from another thread, and never after the block.

    Args:
        tell: gets the seconds that the block has taken so far.
        slow_after_s: seconds after which it is called first.
        again_after_s: seconds between its calls.
    """
    is_over = threading.Event()
    began_s = time.monotonic()

    def watch() -> None:
        wait_s = slow_after_s
        while not is_over.wait(wait_s):
            tell(time.monotonic() - began_s)
            wait_s = again_after_s

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
