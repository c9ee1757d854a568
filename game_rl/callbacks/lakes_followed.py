"""Curves and events about the Lakes that a run follows."""

from collections.abc import Sequence

from game_rl.algorithms.mixed_replay import Mixture
from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.event_log import EventLog
from game_rl.events import LakesFollowed
from game_rl.lake.lake_pool import Following


class LakesFollowedCallback(BoundaryCallback):
    """Writes `learn_from/rows_followed` and `learn_from/newest_age_s`, and an event with both.

    Args:
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        mixture: Mixture,
        following: Following,
        events: EventLog,
        *,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixture, self._following, self._events = mixture, following, events

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        age_s = self._following.newest_age_s
        self.logger.record("learn_from/rows_followed", self._following.n_rows)
        if age_s is not None:
            self.logger.record("learn_from/newest_age_s", age_s)
        self._events.emit(
            LakesFollowed(
                timesteps=self.boundary_timesteps,
                rows=self._following.n_rows,
                newest_age_s=age_s,
                own_drawn=self._mixture.n_own_drawn,
                drawn=self._mixture.n_drawn,
            )
        )
