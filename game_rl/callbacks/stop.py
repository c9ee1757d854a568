"""Ending a training early, at the next timestep, with everything saved."""

import signal
from types import FrameType

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.errors import GameRLError, Interrupted


class StopCallback(BaseCallback):
    """Ends training at the next vec step once `request` was called or Ctrl-C was pressed.

    The other callbacks then see an ordinary end of training and save. `reason` is what the
    composition root raises afterwards. A second Ctrl-C is Python's usual KeyboardInterrupt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reason: GameRLError | None = None
        self._previous_handler: object = None

    def request(self, reason: GameRLError) -> None:
        self.reason = self.reason or reason

    def _on_training_start(self) -> None:
        self._previous_handler = signal.signal(signal.SIGINT, self._on_sigint)

    def _on_training_end(self) -> None:
        self.release_signal()

    def release_signal(self) -> None:
        """Give Ctrl-C back; safe to call twice, and after a training that raised."""
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)  # type: ignore[arg-type]
            self._previous_handler = None

    def _on_sigint(self, _number: int, _frame: FrameType | None) -> None:
        self.release_signal()
        self.request(Interrupted("interrupted"))

    def _on_step(self) -> bool:
        return self.reason is None
