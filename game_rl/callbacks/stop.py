"""Ending a training early, with everything saved."""

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.event_log import EventLog
from game_rl.system.stop_request import StopRequest


class StretchEnded(Exception):  # noqa: N818 - not an error
    """The training has stopped at a boundary, before the next vec step."""


class StopCallback(BaseCallback):
    """Raises StretchEnded at a boundary once the run was asked to stop, has won or reached `until`.

    The boundary is the beginning of the next rollout. The callbacks before this one have saved
    there, and the envs have not played further. This callback must be the last of the list.

    Args:
        has_won: returns whether a condition has ended the run before its total.

    Attributes:
        until: timestep from which on no rollout begins, or None to continue to the run's end.
    """

    def __init__(
        self, stop: StopRequest, events: EventLog, *, has_won: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__()
        self.until: int | None = None
        self._has_won = has_won
        self._stop = stop
        self._events = events

    def _on_rollout_start(self) -> None:
        self._show_notice()
        is_there = self.until is not None and self.num_timesteps >= self.until
        if self._stop.is_asked or is_there or self._has_won():
            raise StretchEnded

    def _on_step(self) -> bool:
        self._show_notice()
        return True

    def _show_notice(self) -> None:
        notice = self._stop.take_notice()
        if notice is not None:
            self._events.warn(notice)
