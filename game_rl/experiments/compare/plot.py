"""A comparison as a picture: each seed and the mean, and the differences with their interval."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from game_rl.experiments.compare.comparison import LEAST_SEEDS, Comparison, Difference
from game_rl.experiments.compare.curves import (
    Axis,
    Curve,
    Floats,
    curve_of,
    curves_of,
    places_of,
    values_at,
)
from game_rl.experiments.compare.outcome import Arm
from game_rl.statistics.permutation import paired_values, unpaired_values

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# of Okabe and Ito: told apart by colour-blind people, too
_WIDTH_INCHES, _PANEL_INCHES, _DPI = 9, 4, 110
_NAMES = {"success_rate": "success rate", "mean_reward": "mean reward"}


def picture(comparison: Comparison, axis: Axis) -> bytes:
    """A PNG: the arms, and below them, if there are several, the differences."""
    panels = 2 if comparison.differences else 1
    size = (_WIDTH_INCHES, panels * _PANEL_INCHES)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = list(figure.subplots(panels, 1, sharex=True, squeeze=False).flat)
    for number, arm in enumerate(comparison.arms):
        _draw_arm(axes[0], comparison, arm, axis, colour=_COLOURS[number % len(_COLOURS)])
    for difference in comparison.differences:
        place = [arm.name for arm in comparison.arms].index(difference.arm)
        colour = _COLOURS[place % len(_COLOURS)]
        _draw_difference(axes[-1], comparison, difference, axis, colour=colour)
    _name_axes(axes, comparison, axis)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _draw_arm(axes: Axes, comparison: Comparison, arm: Arm, axis: Axis, *, colour: str) -> None:
    curves = curves_of(arm, comparison.rule.metric, axis)
    for curve in curves:
        axes.plot(curve.x, curve.y, color=colour, alpha=0.35, linewidth=0.8)
    places = places_of(curves)
    if len(places):
        mean = values_at(curves, places).mean(axis=0)
        axes.plot(places, mean, color=colour, linewidth=2.5, label=f"{arm.name} ({len(curves)})")


def _draw_difference(
    axes: Axes, comparison: Comparison, difference: Difference, axis: Axis, *, colour: str
) -> None:
    by_name = {arm.name: arm for arm in comparison.arms}
    arm, against = by_name[difference.arm], by_name[difference.against]
    ours, theirs = _curves(arm, against, comparison, axis)
    places = places_of([*ours, *theirs])
    if not len(places):
        return
    one, two = values_at(ours, places), values_at(theirs, places)
    label = f"{difference.arm} - {difference.against}"
    axes.plot(places, one.mean(axis=0) - two.mean(axis=0), color=colour, linewidth=2, label=label)
    if min(len(ours), len(theirs)) >= LEAST_SEEDS:
        low, high = _band(one, two, comparison)
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)


def _curves(
    arm: Arm, against: Arm, comparison: Comparison, axis: Axis
) -> tuple[list[Curve], list[Curve]]:
    """Of both arms; where seeds are paired, only pairs of which both have a curve."""
    metric = comparison.rule.metric
    if not comparison.rule.paired:
        return curves_of(arm, metric, axis), curves_of(against, metric, axis)
    pairs = [
        (curve_of(one, metric, axis), curve_of(two, metric, axis))
        for one, two in zip(arm.outcomes, against.outcomes, strict=True)
    ]
    both = [(one, two) for one, two in pairs if one is not None and two is not None]
    return [one for one, _ in both], [two for _, two in both]


def _band(one: Floats, two: Floats, comparison: Comparison) -> tuple[list[float], list[float]]:
    """The interval of the difference at each place by itself."""
    level, bounds = 1 - comparison.rule.alpha, []
    for ours, theirs in zip(one.T, two.T, strict=True):
        is_paired = comparison.rule.paired
        found = paired_values(ours - theirs) if is_paired else unpaired_values(ours, theirs)
        bounds.append(found.interval(level) or (np.nan, np.nan))
    return [low for low, _ in bounds], [high for _, high in bounds]


def _name_axes(drawn: Sequence[Axes], comparison: Comparison, axis: Axis) -> None:
    metric = comparison.rule.metric
    drawn[0].set_ylabel(_NAMES[metric])
    if comparison.differences:
        drawn[-1].set_ylabel("difference")
        drawn[-1].axhline(0, color="grey", linewidth=1)
    drawn[-1].set_xlabel(f"{'emulator frames' if axis == 'frames' else 'timesteps'} of everybody")
    drawn[-1].xaxis.set_major_formatter(EngFormatter())
    for axes in drawn:
        axes.grid(alpha=0.3)
        if metric == "success_rate":
            axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best", fontsize="small")
