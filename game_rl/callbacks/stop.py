"""Ending a training early, with everything saved."""

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.errors import GameRLError
from game_rl.event_log import EventLog


class StretchEnded(Exception):  # noqa: N818 - not an error
    """The training has stopped at a boundary, before the next vec step."""


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
