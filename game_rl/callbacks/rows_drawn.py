"""Curves and events about the composition of a run's batches."""

from collections.abc import Sequence

from game_rl.algorithms.mixed_replay import MOST_CURVES, SHOWN_CHARACTERS, Mixture
from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.event_log import EventLog
from game_rl.events import RowsDrawn


def rows_drawn(mixture: Mixture, timesteps: int) -> RowsDrawn:
    """Return an event with the present numbers."""
    return RowsDrawn(
        timesteps=timesteps,
        own=mixture.n_own_drawn,
        streams=dict(mixture.n_of_streams),
        offline_streams=dict(mixture.n_offline),
    )


class RowsDrawnCallback(BoundaryCallback):
    """Writes `learn_from/drawn_own`, `learn_from/drawn_…` of each stream, and an event.

    The curves are shares of all rows in all batches since the run's first timestep. The event has
    the numbers of rows.

    Args:
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self, mixture: Mixture, events: EventLog, *, every_timesteps: Sequence[int] = ()
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixture, self._events = mixture, events

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        drawn, streams = self._mixture.n_drawn, self._mixture.n_of_streams
        if drawn:
            self.logger.record("learn_from/drawn_own", self._mixture.n_own_drawn / drawn)
        for stream, count in streams.items() if len(streams) <= MOST_CURVES else ():
            self.logger.record(f"learn_from/drawn_{stream[:SHOWN_CHARACTERS]}", count / drawn)
        self._events.emit(rows_drawn(self._mixture, self.boundary_timesteps))
