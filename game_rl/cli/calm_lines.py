"""Lines for a person that come at most once a minute, however much there is to say."""

import time
from collections.abc import Callable, Sequence

from game_rl.events import HintGiven, MilestoneReached

_EVERY_S = 60.0
_MOST_NAMED = 5

Notice = MilestoneReached | HintGiven


class CalmLines:
    """Prints hints one by one, and the milestones since the last line together.

    The first line comes at once, and each later one at least a minute after the one before.

    Args:
        show: prints a text with the timestep that it belongs to.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        show: Callable[[Notice, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show, self._clock = show, clock
        self._hints: list[HintGiven] = []
        self._milestones: list[MilestoneReached] = []
        self._shown_s = -_EVERY_S

    def add(self, event: Notice) -> None:
        if isinstance(event, HintGiven):
            self._hints.append(event)
        else:
            self._milestones.append(event)

    def show_due(self) -> None:
        """Print a line if there is something to say and a minute has passed."""
        is_waiting = self._hints or self._milestones
        if is_waiting and self._clock() - self._shown_s >= _EVERY_S:
            self._shown_s = self._clock()
            self._show_next()

    def show_all(self) -> None:
        """Print what is left, because the run ends."""
        while self._hints or self._milestones:
            self._show_next()

    def _show_next(self) -> None:
        if self._hints:
            hint = self._hints.pop(0)
            self._show(hint, f"hint: {hint.text}")
        else:
            self._show(self._milestones[-1], f"milestone: {_joined(self._milestones)}")
            self._milestones.clear()


def _joined(milestones: Sequence[MilestoneReached]) -> str:
    """Return what was reached, with the timestep of each if there are several."""
    if len(milestones) == 1:
        return milestones[0].text
    texts = [f"{each.text} (timestep {each.timesteps:,})" for each in milestones[:_MOST_NAMED]]
    n_more = len(milestones) - _MOST_NAMED
    more = f"; and {n_more:,} more, which `game-rl status` lists" if n_more > 0 else ""
    return "; ".join(texts) + more
