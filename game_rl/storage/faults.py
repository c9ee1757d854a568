"""How storage fails, in words, and retrying while it does."""

import threading
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Literal, TypeVar, get_args

from game_rl.errors import StorageError

FaultKind = Literal["denied", "missing", "full", "busy", "slow", "unreachable", "refused", "unable"]
ALL_FAULTS: frozenset[FaultKind] = frozenset(get_args(FaultKind))
PASSING_FAULTS: frozenset[FaultKind] = frozenset(("busy", "slow", "unreachable"))
"""The kinds that may pass although nobody changes anything."""

_WORDS: dict[FaultKind, tuple[str, str]] = {
    "denied": (
        "refuses access",
        "check the credentials in the provider's environment variables or files, their permissions "
        "there, and this machine's clock, which says {now}",
    ),
    "missing": (
        "is not there",
        "create the bucket or the folder, or mount the disk, or correct the address",
    ),
    "full": ("is full", "free some space there, or raise its quota"),
    "busy": ("fails or is overloaded", "wait until it works again, or ask the provider"),
    "slow": ("does not answer in time", "check the network; a lower upload.limit_mb_s may help"),
    "unreachable": (
        "cannot be reached",
        "check the network, the address and, for a store of your own, AWS_ENDPOINT_URL",
    ),
    "refused": ("refuses the request", "check the address and the region"),
    "unable": ("does not support a needed operation", "use another kind of storage"),
}


class StoreFault(StorageError):  # noqa: N818 - it may pass
    """The storage refuses, fails or is out of reach; a later attempt may succeed."""

    def __init__(self, kind: FaultKind, address: str, status: int | None = None) -> None:
        self.kind: FaultKind = kind
        what, way_out = _WORDS[kind]
        number = "" if status is None else f" (HTTP {status})"
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{address} {what}{number}; {way_out.format(now=now)}")


class SecondWriterError(StorageError):
    """Another machine or copy writes to the run in storage."""


class LostFileError(StorageError):
    """A file that should be sent is gone on this machine, or damaged.

    Attributes:
        is_damaged: whether the file exists, but with other content than was written.
    """

    def __init__(self, message: str, *, is_damaged: bool = False) -> None:
        super().__init__(message)
        self.is_damaged = is_damaged


_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
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
        self._pause = pause
        self._clock = clock
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
