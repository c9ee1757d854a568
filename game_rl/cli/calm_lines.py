"""Lines for a person that come when something happens, and are counted where they would flood."""

import time
from collections.abc import Callable

from game_rl.events import MilestoneReached

_WITHIN_S = 60.0
_MOST_LINES = 10


class CalmLines:
    """Prints milestones at once, but no more than ten a minute.

    What comes beyond them is counted, and one line says so when the minute is over.

    Args:
        show: prints a text with the timestep that it belongs to.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        show: Callable[[MilestoneReached, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show = show
        self._clock = clock
        self._since_s = -_WITHIN_S
        self._n_shown = 0
        self._held: list[MilestoneReached] = []

    def add(self, event: MilestoneReached) -> None:
        self.show_due()
        if self._clock() - self._since_s >= _WITHIN_S:
            self._since_s = self._clock()
            self._n_shown = 0
        if self._n_shown < _MOST_LINES:
            self._n_shown += 1
            self._show(event, f"milestone: {event.text}")
        else:
            self._held.append(event)

    def show_due(self) -> None:
        """Print how many were left out, if a minute has passed since the first of them."""
        if self._clock() - self._since_s >= _WITHIN_S:
            self.show_all()

    def show_all(self) -> None:
        """Print how many were left out, because the minute is over or the run ends."""
        held = self._held
        self._held = []
        if len(held) == 1:
            self._show(held[0], f"milestone: {held[0].text}")
        elif held:
            last = held[-1]
            text = f"{len(held):,} more milestones, which `game-rl status` lists, up to this one"
            self._show(last, f"{text}: {last.text}")
