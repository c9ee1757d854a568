"""Ending a training early with everything saved."""

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.errors import GameRLError
from game_rl.event_log import EventLog


class StretchEnded(Exception):  # noqa: N818 - not an error
    """Training has come as far as it should, and no vec step further."""


class StopRequest:
    """Whether a run is to end at its next boundary, and why; a signal or a callback may ask.

    Attributes:
        reason: what the training raises once everything is saved.
        deadline_s: how long who asks is ready to wait; the run's config says.
    """

    def __init__(self) -> None:
        self.reason: GameRLError | None = None
        self.deadline_s = 25.0
        self._notice: str | None = None

    @property
    def is_asked(self) -> bool:
        return self.reason is not None

    def ask(self, reason: GameRLError, *, notice: str | None = None) -> None:
        """The first reason counts. `notice` is for the user, shown where it is safe to print."""
        self.reason = self.reason or reason
        self._notice = notice or self._notice

    def take_notice(self) -> str | None:
        """What the user has not been shown yet."""
        notice, self._notice = self._notice, None
        return notice


class StopCallback(BaseCallback):
    """Raises StretchEnded at a boundary once the run was asked to stop or has come to `until`.

    The boundary is the beginning of the next rollout: the callbacks before this one have saved
    there, and the envs have not moved on. It must be the last of the list.

    Attributes:
        until: timesteps at or beyond which no rollout begins; None: the run's own end.
    """

    def __init__(self, stop: StopRequest, events: EventLog) -> None:
        super().__init__()
        self.until: int | None = None
        self._stop = stop
        self._events = events

    def _on_rollout_start(self) -> None:
        self._show_notice()
        is_there = self.until is not None and self.num_timesteps >= self.until
        if self._stop.is_asked or is_there:
            raise StretchEnded

    def _on_step(self) -> bool:
        self._show_notice()
        return True

    def _show_notice(self) -> None:
        notice = self._stop.take_notice()
        if notice is not None:
            self._events.warn(notice)
