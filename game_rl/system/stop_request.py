"""The request to save and end, and the signals that make it."""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from game_rl.errors import GameRLError, Interrupted
from game_rl.system.processes import handled_signals

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)


class StopRequest:
    """Request that a run end at its next boundary, made by a signal or a callback.

    Attributes:
        reason: error that the training raises once everything is saved, or None if no stop was
            requested.
        deadline_s: seconds that the requester waits, from the run's config; infinite for an
            experiment, whose runs have deadlines of their own.
    """

    def __init__(self, deadline_s: float = 25.0) -> None:
        self.reason: GameRLError | None = None
        self.deadline_s = deadline_s
        self._notice: str | None = None

    @property
    def is_asked(self) -> bool:
        return self.reason is not None

    def ask(self, reason: GameRLError, *, notice: str | None = None) -> None:
        """Request a stop; the first reason counts.

        Args:
            notice: text for the user, shown when it is safe to print.
        """
        self.reason = self.reason or reason
        self._notice = notice or self._notice

    @property
    def what_happens(self) -> str:
        """What a first signal does, and a second one."""
        if math.isinf(self.deadline_s):
            return "the runs save and end; a second signal ends them at once"
        return (
            f"the run ends with a checkpoint after this update, or in {self.deadline_s:g} s "
            "without one; a second signal ends it at once"
        )

    def interrupted(self, text: str) -> Interrupted:
        """Return the error of what was stopped, with the exit code of the reason."""
        code = Interrupted("").exit_code if self.reason is None else self.reason.exit_code
        return Interrupted(text, exit_code=code)

    def take_notice(self) -> str | None:
        """Return the notice that the user has not been shown yet, if any, and clear it."""
        notice, self._notice = self._notice, None
        return notice


@contextmanager
def stopping_on_signals(
    stop: StopRequest, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Set `stop` on SIGINT, SIGTERM and SIGUSR1, which batch systems send before a job ends.

    If the work has not ended within `stop.deadline_s`, or on a second signal, a KeyboardInterrupt
    ends it at once, and only what was saved before is left. Only the main thread gets signals: in
    another thread this does nothing.

    Args:
        tell: shows the notice at once; if None, it waits in `stop.take_notice`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if isinstance(stop.reason, Interrupted):
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        reason = Interrupted(f"stopped by {name}", exit_code=128 + number)
        stop.ask(reason, notice=f"{name}: {stop.what_happens}")
        if tell is not None:
            tell(stop.take_notice() or "")
        if math.isfinite(stop.deadline_s):
            signal.setitimer(signal.ITIMER_REAL, stop.deadline_s)

    def on_deadline(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handlers = {**dict.fromkeys(_SIGNALS, on_signal), signal.SIGALRM: on_deadline}
    with handled_signals(handlers):
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
