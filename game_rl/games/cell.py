"""`cell` in game.yaml: what makes two moments of the game the same while exploring."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import StrictModel
from game_rl.games.conditions import Condition
from game_rl.games.reward_term import RewardTerm
from game_rl.games.variables import Values

Cell = tuple[int, ...]
"""What the entries of a cell are at a moment: each a variable's value, divided by its `per`."""

_USUAL_PER = 16  # of a coordinate: two tiles


class CoarseVariable(StrictModel):
    """`{variable: player_x, per: 16}`: values 0 to 15 are the same, 16 to 31, and so on."""

    variable: str
    per: Annotated[int, Field(ge=1, le=2**31)] = 1


CellEntry = Annotated[str | CoarseVariable, Field(union_mode="left_to_right")]


def coarse(entries: Sequence[CellEntry]) -> tuple[CoarseVariable, ...]:
    """Return the entries with `per`, which is 1 where only a name is given."""
    return tuple(CoarseVariable(variable=e) if isinstance(e, str) else e for e in entries)


def usual_cell(
    place: Sequence[str] | None, rewards: Sequence[RewardTerm]
) -> tuple[CoarseVariable, ...]:
    """Return the cell of a game whose game.yaml has none.

    It is the place, its two coordinates in steps of 16, and whatever the rewards count.
    """
    *maps, x, y = place if place and len(place) > 1 else (*(place or ()), "", "")
    found = [CoarseVariable(variable=name) for name in maps]
    found += [CoarseVariable(variable=name, per=_USUAL_PER) for name in (x, y) if name]
    known = {entry.variable for entry in found}
    counted = dict.fromkeys(term.variable for term in rewards if term.variable)
    found += [CoarseVariable(variable=name) for name in counted if name not in known]
    return tuple(found)


def cell_reader(entries: Sequence[CoarseVariable]) -> Callable[[Values], Cell]:
    """Return a function from the values of variables to the cell."""
    pairs = tuple((entry.variable, entry.per) for entry in entries)
    return lambda values: tuple(int(values[name] // per) for name, per in pairs)


def counted_down(endings: Iterable[Condition]) -> Iterator[str]:
    """Yield the variables that end an episode when they have become small, such as lives."""
    for ending in endings:
        for _, part in ending.parts():
            is_small = part.at_most is not None or part.equals == 0
            if part.variable is not None and is_small:
                yield part.variable
