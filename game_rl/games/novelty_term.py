"""A reward term that a place earns less, the more often a run has visited it."""

import math
from dataclasses import dataclass, field

from game_rl.games.place import VisitedPlaces
from game_rl.games.reward_term import RewardTerm, WatchedTerm, WatchedTermState
from game_rl.games.variables import Values

_ALL = 2**62  # visits that are counted


def run_visits() -> VisitedPlaces:
    """Return a count of the visits of a run, which is at 0."""
    return VisitedPlaces(_ALL)


@dataclass(frozen=True)
class NewVisits:
    """What an env has visited since the run's envs last heard of each other.

    Attributes:
        is_counting: whether it knows what the run has visited; otherwise it has counted nothing.
    """

    is_counting: bool = False
    places: VisitedPlaces = field(default_factory=run_visits)


class NoveltyTerm(WatchedTerm):
    """`on: first_visit` with `per_run: true`, in one env.

    A place earns the weight / sqrt(n) in an episode's first visit, where n is the number of
    episodes of the run that have visited it, this one included. Visits of other envs are known once
    the run has told them, and one's own at once. An env that is not told anything, as in an
    evaluation, counts nothing: n is 1.
    """

    def __init__(self, term: RewardTerm) -> None:
        self._is_counting = False
        self._known = run_visits()
        self._new = run_visits()
        super().__init__(term)

    def _look(self, values: Values) -> float:
        names = self._term.variables
        assert names is not None
        place = tuple(values[name] for name in names)
        if self._places.visit(place) > 1:
            return 0.0
        visits = 1
        if self._is_counting:
            visits = self._new.visit(place) + self._known.count(place)
        is_beginning = len(self._places) == 1
        return 0.0 if is_beginning else self._term.weight / math.sqrt(visits)

    def take(self) -> NewVisits:
        """Return what it has visited, and count from 0 again; the run then tells it everything."""
        found = NewVisits(self._is_counting, self._new)
        self._new = run_visits()
        return found

    def learn(self, visits: VisitedPlaces) -> None:
        """Hear of visits of the run: all of them at first, then those that are new."""
        self._is_counting = True
        self._known.add(visits)

    def save_state(self) -> WatchedTermState:
        state = super().save_state()
        if not len(self._new):
            return state
        return state.model_copy(update={"new": self._new.to_bytes()})

    def load_state(self, state: WatchedTermState) -> None:
        super().load_state(state)
        self._new = run_visits()
        if state.of == self._of and state.new is not None:
            self._new.load_bytes(state.new)
