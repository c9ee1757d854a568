"""Where the player is: places and their visits, and how the maps of a game lie in one world."""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.strict_model import StrictModel
from game_rl.errors import GameFileError

Place = tuple[int | float, ...]

_FURTHEST = 2**62  # of a coordinate, so that sums of two are int64


def whole(number: int | float) -> int:
    """Return a coordinate rounded down, with a bounded size."""
    return max(-_FURTHEST, min(_FURTHEST, math.floor(number)))


class VisitedPlaces:
    """Counts the visits to each place, up to as many as matter.

    Args:
        most: a place that was visited this often, or more often, has this count.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._visits: dict[Place, int] = {}

    def __len__(self) -> int:
        return len(self._visits)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._visits)

    def visit(self, place: Place) -> int:
        """Count a visit, and return how many there were of this place, this one included."""
        visits = self._visits.get(place, 0) + 1
        if visits <= self._most:
            self._visits[place] = visits
        return visits

    def count(self, place: Place) -> int:
        """Return how many visits there were of this place."""
        return self._visits.get(place, 0)

    def add(self, other: "VisitedPlaces") -> None:
        """Add the visits that another has counted."""
        for place, visits in other._visits.items():
            self._visits[place] = min(self._most, self._visits.get(place, 0) + visits)

    def to_bytes(self) -> bytes:
        """Return the places in order, compressed: about a byte each where they lie together."""
        ordered = sorted(self._visits.items())
        columns = list(map(_to_column, zip(*(place for place, _ in ordered), strict=True)))
        visits = [] if self._most == 1 else [count for _, count in ordered]
        return zlib.compress(json.dumps([columns, visits], separators=(",", ":")).encode())

    def load_bytes(self, found: bytes) -> None:
        columns, visits = json.loads(zlib.decompress(found))
        places = list(zip(*map(_from_column, columns), strict=True))
        self._visits = dict(zip(places, visits or [1] * len(places), strict=True))


def _to_column(values: Sequence[int | float]) -> list[object]:
    """Return whole numbers as steps from one to the next, which compress well."""
    if all(isinstance(value, int) for value in values):
        return [True, values[0], *(after - before for before, after in pairwise(values))]
    return [False, *values]


def _from_column(column: list[int | float]) -> Iterable[int | float]:
    return accumulate(column[1:]) if column[0] else column[1:]


Offsets = dict[int, tuple[int, int]]
_Offset = Annotated[int, Field(ge=-(2**31), lt=2**31)]


MapName = Annotated[str, Field(min_length=1, max_length=40)]


class MapOffsets(StrictModel):
    """`maps: {0: [0, 0], 12: [10, -36]}`: the x and y in the world of each map's place 0, 0."""

    maps: Annotated[dict[int, tuple[_Offset, _Offset]], Field(min_length=1)]
    names: dict[int, MapName] = Field(default={})
    """What maps are called in pictures."""


def read_map_offsets(path: Path) -> MapOffsets:
    """Return the offset of each map, and the names.

    Raises:
        GameFileError: there is no such file, or it is none of this form.
    """
    return load_yaml_model(path, MapOffsets, error=GameFileError)
