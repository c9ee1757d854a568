"""The places around the player that were visited in an episode, as a small picture."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from game_rl.games.visited_places import Place

_SIDE = 64  # places of a sheet; a map of any size is a few of them

_Sheet = tuple[Place, int, int]


class VisitedMap:
    """Draws what was visited around a place.

    A place is the map's variables, then x and y. Places of maps that have an offset are parts of
    one world. Any other map is a world of its own, of which nothing is seen from elsewhere.

    Args:
        radius: places to the left of the player and above; the grid has twice as many in a row.
        scale: cells on each side of a place.
        offsets: x and y in the world of each map's place 0, 0.
    """

    def __init__(self, radius: int, scale: int, offsets: Mapping[int, tuple[int, int]]) -> None:
        self._radius = radius
        self._scale = scale
        self._offsets = offsets
        self._sheets: dict[_Sheet, NDArray[np.uint8]] = {}

    def clear(self) -> None:
        self._sheets.clear()

    def mark(self, place: Place) -> None:
        world, x, y = self._in_the_world(place)
        key = (world, y // _SIDE, x // _SIDE)
        sheet = self._sheets.get(key)
        if sheet is None:
            sheet = self._sheets[key] = np.zeros((_SIDE, _SIDE), np.uint8)
        sheet[y % _SIDE, x % _SIDE] = 1

    def around(self, place: Place) -> NDArray[np.uint8]:
        """Return a new [1, size, size] of 0 and 1; rows are y, downwards.

        The place itself is at row and column `radius`, times `scale`.
        """
        world, x, y = self._in_the_world(place)
        side = 2 * self._radius
        top = y - self._radius
        left = x - self._radius
        found = np.zeros((side, side), np.uint8)
        for row in range(top // _SIDE, (top + side - 1) // _SIDE + 1):
            for column in range(left // _SIDE, (left + side - 1) // _SIDE + 1):
                sheet = self._sheets.get((world, row, column))
                if sheet is not None:
                    into, rows = _overlap(top, side, row)
                    across, columns = _overlap(left, side, column)
                    found[into, across] = sheet[rows, columns]
        return found.repeat(self._scale, axis=0).repeat(self._scale, axis=1)[None]

    def _in_the_world(self, place: Place) -> tuple[Place, int, int]:
        *maps, x, y = place
        offset = self._offsets.get(int(maps[0])) if maps else None
        if offset is None:
            return tuple(maps), int(x), int(y)
        return (), int(x) + offset[0], int(y) + offset[1]


def _overlap(first: int, n: int, sheet: int) -> tuple[slice, slice]:
    """Return which of `n` places from `first` on lie on a sheet, and where on it they are."""
    start = max(first, sheet * _SIDE)
    end = min(first + n, (sheet + 1) * _SIDE)
    origin = sheet * _SIDE
    return slice(start - first, end - first), slice(start - origin, end - origin)
