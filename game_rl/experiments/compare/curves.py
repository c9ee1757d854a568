"""Learning curves of several seeds, interpolated at common places for a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from game_rl.experiments.compare.outcome import Arm, Metric, Outcome

Axis = Literal["timesteps", "frames"]
Floats = NDArray[np.float64]
_MOST_PLACES = 200


@dataclass(frozen=True)
class Curve:
    """The learning curve of one seed: x and y are float64 [n], x ascending."""

    x: Floats
    y: Floats


def curve_of(outcome: Outcome, metric: Metric, axis: Axis) -> Curve | None:
    """Return a seed's curve, or None without evaluations.

    The x axis counts the timesteps or frames of the run and of everything that it comes from.
    """
    points = [p for p in outcome.curve if metric == "mean_reward" or p.success_rate is not None]
    if not points:
        return None
    x = [p.total_timesteps if axis == "timesteps" else p.total_frames for p in points]
    y = [p.success_rate if metric == "success_rate" else p.mean_reward for p in points]
    return Curve(np.array(x, dtype=np.float64), np.array(y, dtype=np.float64))


def curves_of(arm: Arm, metric: Metric, axis: Axis) -> list[Curve]:
    found = (curve_of(outcome, metric, axis) for outcome in arm.outcomes)
    return [curve for curve in found if curve is not None]


def places_of(curves: Sequence[Curve]) -> Floats:
    """Return places within the range that all curves cover; empty if there is none.

    They are the places of any curve's evaluations or, if these are more than 200, 200 even ones.
    """
    if not curves:
        return np.empty(0)
    first, last = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    every = np.unique(np.concatenate([curve.x for curve in curves]))
    inside: Floats = every[(every >= first) & (every <= last)]
    if len(inside) <= _MOST_PLACES:
        return inside
    return np.linspace(first, last, _MOST_PLACES)


def values_at(curves: Sequence[Curve], places: Floats) -> Floats:
    """Interpolate linearly between evaluations; float64 [curves, places]."""
    return np.array([np.interp(places, curve.x, curve.y) for curve in curves])
