"""The time that a run has trained."""

import time


class TrainingTime:
    """A stopwatch that adds up the seconds of training over all sessions of a run.

    Args:
        seconds: of earlier sessions.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._counted_s: float | None = None

    def start(self) -> None:
        """Count from now on, and not what went by since the last reading."""
        self._counted_s = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds so far."""
        if self._counted_s is not None:
            before, self._counted_s = self._counted_s, time.monotonic()
            self._seconds += self._counted_s - before
        return self._seconds
