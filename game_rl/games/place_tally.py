"""Where one env was since it was last asked: each place and how often, while the run is played."""

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.games.variables import Values

_FURTHEST = 2**62  # of a coordinate, so that sums of two are int64


class Visits(NamedTuple):
    """Places and how often the player was at each.

    Attributes:
        places: int64 [n, variables of `place`].
        counts: int64 [n].
    """

    places: NDArray[np.int64]
    counts: NDArray[np.int64]


class PlaceTally:
    """Counts timesteps by the place where they ended.

    It holds one entry for each different place since the last `take`.

    Args:
        names: the variables that say where the player is.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._place_of: Callable[[Values], Any] = itemgetter(*names)
        self._counts: dict[Any, int] = {}

    def add(self, values: Values) -> None:
        """Count a timestep after which the variables have these values."""
        place = self._place_of(values)
        self._counts[place] = self._counts.get(place, 0) + 1

    def take(self) -> Visits:
        """Return what was counted, and count from 0 again; numbers are rounded down."""
        counts = self._counts
        self._counts = {}
        tuples = counts if len(self.names) > 1 else [(place,) for place in counts]
        places = [[_whole(number) for number in place] for place in tuples]
        return Visits(
            np.array(places, np.int64).reshape(len(counts), len(self.names)),
            np.fromiter(counts.values(), np.int64, len(counts)),
        )


def _whole(number: int | float) -> int:
    return max(-_FURTHEST, min(_FURTHEST, math.floor(number)))
