"""What a plot shows, as numbers: panels with lines, before anything is drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from game_rl.statistics import Floats, mean_interval

_MOST_PLACES = 200


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


LineStyle = Literal["main", "seed", "second", "forecast", "final", "dots", "baseline"]
"""main: a run or the mean of seeds; seed: one of several; second: the same in another way, such as
while training; forecast: what the preflight predicted; final: the final evaluation, a point; dots:
points of several, without a line; baseline: a policy that has learned nothing."""
Unit = Literal["share", "difference", "number", "bytes", "per_second"]
"""difference: of two shares."""


@dataclass(frozen=True)
class PlotLine:
    """A line of a panel: x and y are float64 [n], x ascending.

    Attributes:
        label: its entry in the legend; empty for none.
        colour: number of its colour, from 0.
        interval: lower and upper ends of y, float64 [n] each.
    """

    label: str
    colour: int
    x: Floats
    y: Floats
    style: LineStyle = "main"
    interval: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
        name: short name without spaces, such as `success`.
        note: what a reader must know beside the title; empty if nothing.
        from_zero: whether the y axis begins at 0.
    """

    name: str
    title: str
    unit: Unit
    lines: tuple[PlotLine, ...]
    note: str = ""
    from_zero: bool = False
    x_label: str = field(default="timesteps")


def seed_lines(label: str, colour: int, curves: Sequence[SeedCurve]) -> Iterator[PlotLine]:
    """Yield one curve as a main line; of several, each thin, and their mean where all have values.

    The mean interpolates between the points of each seed and smooths nothing. From five curves on
    it has Student's 95 % interval at each place.
    """
    if len(curves) == 1:
        yield PlotLine(label, colour, curves[0].x, curves[0].y)
        return
    places = places_of(curves)
    for number, curve in enumerate(curves):
        is_named = number == 0 and not len(places)
        yield PlotLine(label if is_named else "", colour, curve.x, curve.y, style="seed")
    if len(places):
        values = values_at(curves, places)
        mean = values.mean(axis=0)
        yield PlotLine(label, colour, places, mean, interval=_mean_intervals(values))


def _mean_intervals(values: Floats) -> tuple[Floats, Floats] | None:
    """Return the ends of the mean's interval at each place; None for fewer than five curves."""
    means = values.mean(axis=0).tolist()
    deviations = values.std(axis=0).tolist()
    found = [
        mean_interval(mean, deviation, len(values))
        for mean, deviation in zip(means, deviations, strict=True)
    ]
    ends = [each for each in found if each is not None]
    if not ends:
        return None
    low, high = np.array(ends, dtype=np.float64).T
    return low, high


def has_mean_interval(lines: Sequence[PlotLine]) -> bool:
    """Return whether the mean of several seeds has an interval."""
    with_seeds = {line.colour for line in lines if line.style == "seed"}
    return any(
        line.interval is not None and line.style == "main" and line.colour in with_seeds
        for line in lines
    )


MEAN_INTERVAL_WORDS = "band: 95 % interval of the mean of the seeds"
"""What a panel's note says of it."""


_MOST_POINTS = 200


def thinned(curve: SeedCurve) -> SeedCurve:
    """Return a curve of at most 200 points, each the mean of as many neighbours as it stands for.

    A curve that has no more is returned as it is.
    """
    n = len(curve.x)
    if n <= _MOST_POINTS:
        return curve
    starts = n * np.arange(_MOST_POINTS) // _MOST_POINTS
    counts = np.diff(np.append(starts, n))
    return SeedCurve(*(np.add.reduceat(each, starts) / counts for each in (curve.x, curve.y)))
