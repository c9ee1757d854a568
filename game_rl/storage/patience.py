"""Asking storage again while it fails, after pauses that grow, for callers that have to wait."""

import threading
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from game_rl.storage.faults import ALL_FAULTS, FaultKind, StoreFault

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_TOLD_EVERY_S = 60.0

Answer = TypeVar("Answer")


class Patience:
    """Repeats requests while storage fails; threads may share it.

    An outage begins with a fault and ends with the next answer to any of them.

    Args:
        longest_s: duration of an outage after which its fault is raised.
        waits_for: kinds of faults that are waited for; others are raised at once.
        tell: called with the first fault of an outage, but at most once a minute.
    """

    def __init__(
        self,
        longest_s: float,
        *,
        waits_for: Collection[FaultKind] = ALL_FAULTS,
        tell: Callable[[StoreFault], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest_s = longest_s
        self._waits_for = waits_for
        self._tell = tell
        self._pause, self._clock = pause, clock
        self._failing_since_s: float | None = None
        self._told_s: float | None = None
        self._lock = threading.Lock()

    def ask(self, ask: Callable[[], Answer]) -> Answer:
        """Return the result of `ask`; raise its StoreFault if an outage lasts too long."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                answer = ask()
            except StoreFault as fault:
                self._bear(fault, pause_s)
            else:
                self._failing_since_s = None
                return answer
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _bear(self, fault: StoreFault, pause_s: float) -> None:
        """Raise the fault unless it is waited for, and for `pause_s` longer."""
        now_s = self._clock()
        with self._lock:
            is_new = self._failing_since_s is None
            since_s = now_s if self._failing_since_s is None else self._failing_since_s
            if fault.kind not in self._waits_for or now_s + pause_s > since_s + self._longest_s:
                raise fault
            self._failing_since_s = since_s
            is_told = self._told_s is not None and now_s < self._told_s + _TOLD_EVERY_S
            if is_new and not is_told:
                self._told_s = now_s
                self._tell(fault)


NO_PATIENCE = Patience(0)
