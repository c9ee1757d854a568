"""Reward terms that depend on the episode so far: bests, visited places, `when` and `unless`."""

from pydantic import Field

from game_rl.files.saved import Blob, Saved
from game_rl.games.conditions import judge
from game_rl.games.place import Place, VisitedPlaces
from game_rl.games.reward_term import RewardTerm
from game_rl.games.variables import Values

_NAMES = ("variable", "variables")


class WatchedTermState(Saved):
    """What a reward term remembers of the episode so far."""

    of: tuple[str, ...] = ()
    """The term's `on` and variables; a term with others remembers nothing of it."""
    best: int | float | None = None
    """Highest or lowest value so far, for a new maximum or minimum."""
    places: Blob | None = None
    """The visited places, as `VisitedPlaces` writes them."""
    in_a_row: dict[str, int] = Field(default={})
    """Timesteps in a row for which a condition with `for` has held, by its key."""


class WatchedTerm:
    """A reward term in one running episode, with what it remembers of it.

    A timestep after which `when` does not hold, or `unless` does, is not seen: it earns nothing, is
    no visit, and gives no best. The beginning of the episode is seen as a timestep is, and what is
    seen first gives the first best, or the first place, and earns nothing.
    """

    def __init__(self, term: RewardTerm) -> None:
        self._term = term
        self._of = (term.on, *(name for key, name in term.references() if key[0] in _NAMES))
        self._conditions = tuple(
            (key, condition, key == "when") for (key,), condition in term.conditions()
        )
        self._forget()

    def _forget(self) -> None:
        self._best: int | float | None = None
        self._places = VisitedPlaces(self._term.at_least or 1)
        self._in_a_row: dict[str, int] = {}

    def reset(self, values: Values) -> None:
        self._forget()
        if all(found.holds(values) == wanted for _, found, wanted in self._conditions):
            self._look(values)

    def step(self, values: Values, before: Values) -> float:
        """Return the reward of a timestep.

        Args:
            values: the variables after the timestep.
            before: those after the timestep before.
        """
        # both are judged at every timestep, because they count them
        judged = [
            judge(condition, key, values, before, self._in_a_row) == wanted
            for key, condition, wanted in self._conditions
        ]
        if not all(judged):
            return 0.0
        term = self._term
        variable = self._term.variable
        if variable is None or term.is_of_bests:
            return self._look(values)
        return term.reward(before[variable], values[variable])

    def _look(self, values: Values) -> float:
        """Remember what the term has to remember of these values, and return what that earns."""
        term = self._term
        if term.variables is not None:
            return self._visit(tuple(values[name] for name in term.variables))
        if term.variable is not None and term.is_of_bests:
            return self._compare(values[term.variable])
        return 0.0

    def _visit(self, place: Place) -> float:
        visits = self._places.visit(place)
        term = self._term
        if term.at_least is not None:
            return term.weight if visits >= term.at_least else 0.0
        n_new = len(self._places) - 1  # without the first one
        return term.reward(n_new - 1, n_new) if visits == 1 and n_new else 0.0

    def _compare(self, value: int | float) -> float:
        best = value if self._best is None else self._best
        self._best = max(best, value) if self._term.on == "new_maximum" else min(best, value)
        return self._term.reward(best, value)

    def save_state(self) -> WatchedTermState:
        return WatchedTermState(
            of=self._of,
            best=self._best,
            places=self._places.to_bytes() if len(self._places) else None,
            in_a_row=dict(self._in_a_row),
        )

    def load_state(self, state: WatchedTermState) -> None:
        self._forget()
        if state.of != self._of:  # the game file was changed
            return
        self._best = state.best
        if state.places is not None:
            self._places.load_bytes(state.places)
        self._in_a_row = dict(state.in_a_row)
