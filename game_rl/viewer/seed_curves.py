"""Curves of several seeds, and their values at common places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST_PLACES = 200

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SeedCurve:
    """The curve of one seed: x and y are float64 [n], x ascending."""

    x: Floats
    y: Floats


def places_of(curves: Sequence[SeedCurve]) -> Floats:
    """Return places within the range that all curves cover; empty if there is none.

    They are the places of any curve's points or, if these are more than 200, 200 even ones.
    """
    if not curves:
        return np.empty(0)
    first = max(curve.x[0] for curve in curves)
    last = min(curve.x[-1] for curve in curves)
    every = np.unique(np.concatenate([curve.x for curve in curves]))
    inside: Floats = every[(every >= first) & (every <= last)]
    if len(inside) <= _MOST_PLACES:
        return inside
    return np.linspace(first, last, _MOST_PLACES)


def values_at(curves: Sequence[SeedCurve], places: Floats) -> Floats:
    """Interpolate linearly between the points; float64 [curves, places]."""
    return np.array([np.interp(places, curve.x, curve.y) for curve in curves])
