"""The moment between an update and the next rollout, and what acts or ends training there."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.events.event_log import EventLog
from game_rl.system.stop_request import StopRequest


class Interval:
    """Detects when a multiple of `every_timesteps` is crossed.

    Counting timesteps instead of calls keeps the rhythm for any number of envs and after a resume.
    """

    def __init__(self, every_timesteps: int) -> None:
        self._every = every_timesteps
        self.last_timesteps = 0

    def crossed(self, timesteps: int) -> bool:
        """Return whether a multiple was reached since the previous call."""
        due = timesteps // self._every > self.last_timesteps // self._every
        self.last_timesteps = timesteps
        return due


def any_due(rhythm: Sequence[Interval], timesteps: int) -> bool:
    """Return whether one of the intervals was crossed, or there is none."""
    due = [interval.crossed(timesteps) for interval in rhythm]
    return any(due) or not due


class BoundaryCallback(BaseCallback):
    """Acts between updates, when the policy, its optimiser and the counters agree.

    A training that is stopped in the middle of a rollout ends at the boundary before that rollout.
    The rollout changed only SB3's timestep counter, so `boundary_timesteps` does not count it.

    Args:
        every_timesteps: act only at boundaries where a multiple of one of these was reached, and
            at the end; if empty, at each boundary. DQN has a boundary every few vec steps.
        verbose: SB3's; accepted so that a class can inherit from an SB3 callback as well.
    """

    boundary_timesteps: int = 0
    _started_at: int = 0

    def __init__(self, verbose: int = 0, *, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__(verbose)
        self._rhythm = [Interval(timesteps) for timesteps in every_timesteps]

    @abstractmethod
    def on_boundary(self, *, is_last: bool) -> None:
        """Act after each update but the last and, with `is_last`, once when training ends.

        The start of training is no boundary, because a resumed run acted there before it was saved.
        """

    def _on_training_start(self) -> None:
        self.boundary_timesteps = self._started_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.num_timesteps > self._started_at:
            self.boundary_timesteps = self.num_timesteps
            if any_due(self._rhythm, self.num_timesteps):
                self.on_boundary(is_last=False)

    def _on_rollout_end(self) -> None:
        self.boundary_timesteps = self.num_timesteps

    def _on_training_end(self) -> None:
        self.on_boundary(is_last=True)

    def _on_step(self) -> bool:
        return True


class StopTraining(Exception):  # noqa: N818 - not an error
    """The training has stopped at a boundary, before the next vec step."""


class StopCallback(BaseCallback):
    """Raises StopTraining at a boundary once the run was asked to stop, has won or reached `until`.

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
            raise StopTraining

    def _on_step(self) -> bool:
        self._show_notice()
        return True

    def _show_notice(self) -> None:
        notice = self._stop.take_notice()
        if notice is not None:
            self._events.warn(notice)
