"""The request to save and end, and the signals that make it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from game_rl.errors import GameRLError, Interrupted

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)


class StopRequest:
    """Request that a run end at its next boundary, made by a signal or a callback.

    Attributes:
        reason: error that the training raises once everything is saved, or None if no stop was
            requested.
        deadline_s: seconds that the requester waits, from the run's config.
    """

    def __init__(self) -> None:
        self.reason: GameRLError | None = None
        self.deadline_s = 25.0
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

    def take_notice(self) -> str | None:
        """Return the notice that the user has not been shown yet, if any, and clear it."""
        notice, self._notice = self._notice, None
        return notice


@contextmanager
def stopping_on_signals(stop: StopRequest) -> Iterator[None]:
    """Set `stop` on SIGINT, SIGTERM and SIGUSR1, which batch systems send before a job ends.

    If the run has not ended within `stop.deadline_s`, or on a second signal, a KeyboardInterrupt
    ends it at once, and only what was saved before is left. Only the main thread gets signals: in
    another thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if isinstance(stop.reason, Interrupted):
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        notice = (
            f"{name}: the run ends with a checkpoint after this update, or in "
            f"{stop.deadline_s:g} s without one; a second signal ends it at once"
        )
        stop.ask(Interrupted(f"stopped by {name}", exit_code=128 + number), notice=notice)
        signal.setitimer(signal.ITIMER_REAL, stop.deadline_s)

    def on_deadline(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handlers: dict[int, Callable[[int, FrameType | None], None]] = dict.fromkeys(
        _SIGNALS, on_signal
    )
    handlers[signal.SIGALRM] = on_deadline
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)


_EXPERIMENT_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping_experiment_on_signals(
    stop: "StopFlag", notice: Callable[[str], None]
) -> Iterator[None]:
    """Set `stop` on SIGINT and SIGTERM; runs then save and end. A second signal ends them now."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.reason is not None:
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        stop.reason = Interrupted(f"stopped by {name}", exit_code=128 + number)
        notice(f"{name}: the runs save and end; a second signal ends them at once")

    previous = {number: signal.signal(number, on_signal) for number in _EXPERIMENT_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class StopFlag:
    """Whether the experiment should save and end, and why; a signal handler sets it."""

    def __init__(self) -> None:
        self.reason: Interrupted | None = None
