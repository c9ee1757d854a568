"""Signal handling of a training: it saves and ends."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from game_rl.callbacks.stop import StopRequest
from game_rl.errors import Interrupted

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)


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
