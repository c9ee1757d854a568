"""Ending a training early with everything saved: by a signal, or because something ran out."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.errors import GameRLError, Interrupted

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)


class StopCallback(BoundaryCallback):
    """Ends training after the next boundary once `request` was called or a signal came.

    SIGINT, SIGTERM and SIGUSR1 (which batch systems send before they end a job) do. The other
    callbacks see that boundary and save; `reason` is what the composition root raises afterwards.
    If the boundary does not come within `deadline_s`, or with a second signal, training ends at
    once by a KeyboardInterrupt; what was saved before is what is left.

    Must act after the callbacks that save.

    Args:
        deadline_s: what a signal's sender is ready to wait.
        notify: told that a signal came, in words for the user.
    """

    def __init__(self, *, deadline_s: float, notify: Callable[[str], None]) -> None:
        super().__init__()
        self.reason: GameRLError | None = None
        self.deadline_s = deadline_s
        self._notify = notify
        self._notice: str | None = None
        self._is_saved = False
        self._previous: dict[int, Any] = {}

    def request(self, reason: GameRLError) -> None:
        self.reason = self.reason or reason

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        self._is_saved = self.reason is not None

    def _on_step(self) -> bool:
        if self._notice is not None:  # not in the handler: it may have come while something printed
            self._notify(self._notice)
            self._notice = None
        return not self._is_saved

    def _on_training_start(self) -> None:
        super()._on_training_start()
        if threading.current_thread() is threading.main_thread():
            handlers: dict[int, Callable[[int, FrameType | None], None]] = dict.fromkeys(
                _SIGNALS, self._on_signal
            )
            handlers[signal.SIGALRM] = self._on_deadline
            self._previous = {
                number: signal.signal(number, handler) for number, handler in handlers.items()
            }

    def _on_training_end(self) -> None:
        super()._on_training_end()
        self.release_signals()

    def release_signals(self) -> None:
        """Give the signals back; safe to call twice, and after a training that raised."""
        if self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if isinstance(self.reason, Interrupted):
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        self._notice = (
            f"{name}: the run ends with a checkpoint after this update, or in "
            f"{self.deadline_s:g} s without one; once more ends it at once"
        )
        self.reason = Interrupted(f"stopped by {name}", exit_code=128 + number)
        signal.setitimer(signal.ITIMER_REAL, self.deadline_s)

    def _on_deadline(self, _number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt
