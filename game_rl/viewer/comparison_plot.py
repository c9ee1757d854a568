"""The comparison as a picture."""

import io
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from game_rl.experiments.compare.comparison import LEAST_SEEDS, Comparison, Difference
from game_rl.experiments.compare.comparison_arms import Arm, Metric, Outcome
from game_rl.statistics import paired_values, unpaired_values
from game_rl.viewer.look import LIGHT
from game_rl.viewer.panel_figure import in_look
from game_rl.viewer.seed_curves import Floats, SeedCurve, places_of, values_at

_COLOURS = LIGHT.series
_WIDTH_INCHES, _ARMS_INCHES, _DIFFERENCE_INCHES, _DPI = 9, 4, 3, 110
_NAMES = {"success_rate": "success rate", "mean_reward": "mean reward"}

Axis = Literal["timesteps", "frames"]


def plot_png(comparison: Comparison, axis: Axis) -> bytes:
    """Return a PNG: the arms, and below them a panel for each difference, in two columns."""
    file = io.BytesIO()
    with in_look(LIGHT):
        draw(comparison, axis).savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def draw(comparison: Comparison, axis: Axis) -> Figure:
    """Return the figure; its first axes show the arms, the others the differences."""
    differences = comparison.differences
    columns = min(2, max(1, len(differences)))
    rows = 1 + math.ceil(len(differences) / columns)
    heights = [_ARMS_INCHES] + [_DIFFERENCE_INCHES] * (rows - 1)
    figure = Figure(figsize=(_WIDTH_INCHES, sum(heights)), dpi=_DPI, layout="constrained")
    grid = figure.add_gridspec(rows, columns, height_ratios=heights)
    top = figure.add_subplot(grid[0, :])
    for number, arm in enumerate(comparison.arms):
        _draw_arm(top, comparison, arm, axis, colour=_COLOURS[number % len(_COLOURS)])
    panels: list[Axes] = []
    for number, difference in enumerate(differences):
        place = grid[1 + number // columns, number % columns]
        panels.append(figure.add_subplot(place, sharex=top, sharey=panels[0] if panels else None))
        arm_number = [arm.name for arm in comparison.arms].index(difference.arm)
        colour = _COLOURS[arm_number % len(_COLOURS)]
        _draw_difference(panels[-1], comparison, difference, axis, colour=colour)
        is_left = number % columns == 0
        panels[-1].set_ylabel("difference" if is_left else "")
        panels[-1].tick_params(labelleft=is_left)
    _name_axes(top, panels, comparison, axis)
    return figure


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
    axes.set_title(f"{difference.arm} - {difference.against}", fontsize="medium")
    axes.axhline(0, color=LIGHT.muted, linewidth=1)
    by_name = {arm.name: arm for arm in comparison.arms}
    arm, against = by_name[difference.arm], by_name[difference.against]
    ours, theirs = _curves(arm, against, comparison, axis)
    places = places_of([*ours, *theirs])
    if not len(places):
        return
    one, two = values_at(ours, places), values_at(theirs, places)
    axes.plot(places, one.mean(axis=0) - two.mean(axis=0), color=colour, linewidth=2)
    if min(len(ours), len(theirs)) >= LEAST_SEEDS:
        low, high = _band(one, two, comparison)
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)


def _curves(
    arm: Arm, against: Arm, comparison: Comparison, axis: Axis
) -> tuple[list[SeedCurve], list[SeedCurve]]:
    """Return the curves of both arms; of paired seeds, only those in which both have a curve."""
    metric = comparison.rule.metric
    if not comparison.rule.paired:
        return curves_of(arm, metric, axis), curves_of(against, metric, axis)
    pairs = [
        (plotted_curve(one, metric, axis), plotted_curve(two, metric, axis))
        for one, two in zip(arm.outcomes, against.outcomes, strict=True)
    ]
    both = [(one, two) for one, two in pairs if one is not None and two is not None]
    return [one for one, _ in both], [two for _, two in both]


def _band(one: Floats, two: Floats, comparison: Comparison) -> tuple[list[float], list[float]]:
    """Return the ends of the difference's interval, computed separately at each place."""
    level, bounds = 1 - comparison.rule.alpha, []
    for ours, theirs in zip(one.T, two.T, strict=True):
        is_paired = comparison.rule.paired
        found = paired_values(ours - theirs) if is_paired else unpaired_values(ours, theirs)
        bounds.append(found.interval(level) or (np.nan, np.nan))
    return [low for low, _ in bounds], [high for _, high in bounds]


def _name_axes(top: Axes, differences: Sequence[Axes], comparison: Comparison, axis: Axis) -> None:
    metric = comparison.rule.metric
    top.set_ylabel(_NAMES[metric])
    if top.get_legend_handles_labels()[0]:
        top.legend(loc="best", fontsize="small")
    for axes in [top, *differences]:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if metric == "success_rate":
            axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    top.figure.supxlabel(  # once, below all panels
        f"{'emulator frames' if axis == 'frames' else 'timesteps'} of everybody", fontsize="medium"
    )


def plotted_curve(outcome: Outcome, metric: Metric, axis: Axis) -> SeedCurve | None:
    """Return a seed's curve, or None without evaluations.

    The x axis counts the timesteps or frames of the run and of everything that it comes from.
    """
    points = [p for p in outcome.curve if metric == "mean_reward" or p.success_rate is not None]
    if not points:
        return None
    x = [p.total_timesteps if axis == "timesteps" else p.total_frames for p in points]
    y = [p.success_rate if metric == "success_rate" else p.mean_reward for p in points]
    return SeedCurve(np.array(x, dtype=np.float64), np.array(y, dtype=np.float64))


def curves_of(arm: Arm, metric: Metric, axis: Axis) -> list[SeedCurve]:
    found = (plotted_curve(outcome, metric, axis) for outcome in arm.outcomes)
    return [curve for curve in found if curve is not None]
