"""The request to save and end, and the signals that make it."""

import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from game_rl.errors import GameRLError, Interrupted
from game_rl.system.processes import Handler, handled_signals, known_signals, signal_self

_SIGNALS = known_signals("SIGINT", "SIGTERM", "SIGUSR1", "SIGBREAK")  # the last one is Windows'
_HANG_UP = known_signals("SIGHUP")  # the terminal is gone; its shell may send it once more


class StopRequest:
    """Request that a run end at its next boundary, made by a signal or a callback.

    Attributes:
        reason: error that the training raises once everything is saved, or None if no stop was
            requested.
        deadline_s: seconds that the requester waits, from the run's config; infinite for an
            experiment, whose runs have deadlines of their own.
    """

    def __init__(self, deadline_s: float = 25.0, *, ending: str | None = None) -> None:
        """Begin without a request.

        Args:
            ending: how the work ends after a first signal, for the user; None: as a run does, or
                the runs of an experiment.
        """
        self.reason: GameRLError | None = None
        self.deadline_s = deadline_s
        self._ending = ending
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
        if self._ending is not None:
            return f"{self._ending}; a second signal ends it at once"
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
        notice = self._notice
        self._notice = None
        return notice


class _Alarm:
    """A deadline that a signal of its own announces."""

    handlers: Mapping[int, Handler]
    is_over = False

    def __init__(self) -> None:
        def on_alarm(_number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        self.handlers = {signal.SIGALRM: on_alarm}

    def set(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def cancel(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


class _Timer:
    """A deadline that a thread announces by a SIGINT; `is_over` tells it from others."""

    handlers: Mapping[int, Handler] = {}

    def __init__(self) -> None:
        self.is_over = False
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()  # a signal's handler may interrupt `cancel`

    def set(self, seconds: float) -> None:
        self.cancel()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _end(self) -> None:
        with self._lock:
            if self._timer is not None and not self._timer.finished.is_set():
                self.is_over = True
                signal_self(signal.SIGINT)


_new_deadline = _Alarm if hasattr(signal, "SIGALRM") else _Timer


@contextmanager
def stopping_on_signals(
    stop: StopRequest, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Set `stop` on SIGINT, SIGTERM, SIGHUP, and SIGUSR1, which batch systems send before the end.

    SIGHUP stays ignored if it was, as under `nohup`. If the work has not ended within
    `stop.deadline_s`, or on a second signal (but SIGHUP), a KeyboardInterrupt ends it at once, and
    only what was saved before is left. Only the main thread gets signals: in another thread this
    does nothing.

    Args:
        tell: shows the notice at once; if None, it waits in `stop.take_notice`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    deadline = _new_deadline()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if number in _HANG_UP and isinstance(stop.reason, Interrupted):
            return
        if deadline.is_over or isinstance(stop.reason, Interrupted):
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        reason = Interrupted(f"stopped by {name}", exit_code=128 + number)
        stop.ask(reason, notice=f"{name}: {stop.what_happens}")
        if tell is not None:
            tell(stop.take_notice() or "")
        if math.isfinite(stop.deadline_s):
            deadline.set(stop.deadline_s)

    hang_up = (number for number in _HANG_UP if signal.getsignal(number) != signal.SIG_IGN)
    handlers: dict[int, Handler] = dict.fromkeys((*_SIGNALS, *hang_up), on_signal)
    with handled_signals(handlers | dict(deadline.handlers)):
        try:
            yield
        finally:
            deadline.cancel()
