"""The comparison as a picture."""

import io
import math
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from game_rl.experiments.compare.comparison import (
    LEAST_SEEDS,
    Arm,
    Comparison,
    Difference,
    Metric,
    Outcome,
)
from game_rl.look import LIGHT
from game_rl.statistics import paired_values, percent, unpaired_values
from game_rl.viewer.panel_figure import draw_panel, in_look, titled_figure
from game_rl.viewer.panels import (
    MEAN_INTERVAL_WORDS,
    Panel,
    PlotLine,
    SeedCurve,
    has_mean_interval,
    places_of,
    seed_lines,
    values_at,
)

_WIDTH_INCHES = 11.2
_ARMS_INCHES = 4
_DIFFERENCE_INCHES = 3.3
_TITLES = {"success_rate": "Success rate", "mean_reward": "Mean reward"}

Axis = Literal["timesteps", "frames"]


def plot_png(comparison: Comparison, axis: Axis) -> bytes:
    """Return a PNG: the arms, and below them a panel for each difference, in two columns."""
    file = io.BytesIO()
    with in_look(LIGHT):
        draw(comparison, axis).savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def draw(comparison: Comparison, axis: Axis) -> Figure:
    """Return the figure; its first axes show the arms, the others the differences."""
    panels = [_difference_panel(comparison, each, axis) for each in comparison.differences]
    columns = min(2, max(1, len(panels)))
    rows = 1 + math.ceil(len(panels) / columns)
    heights = [_ARMS_INCHES] + [_DIFFERENCE_INCHES] * (rows - 1)
    title = " and ".join(arm.name for arm in comparison.arms)
    figure = titled_figure(title, _WIDTH_INCHES, sum(heights))
    grid = figure.add_gridspec(rows, columns, height_ratios=heights)
    top = figure.add_subplot(grid[0, :])
    draw_panel(top, _arms_panel(comparison, axis), LIGHT, has_title=True, has_legend=True)
    drawn: list[Axes] = []
    for number, panel in enumerate(panels):
        place = grid[1 + number // columns, number % columns]
        axes = figure.add_subplot(place, sharex=top, sharey=drawn[0] if drawn else None)
        axes.axhline(0, color=LIGHT.muted, linewidth=1)
        draw_panel(axes, panel, LIGHT, has_title=True, has_legend=False)
        axes.tick_params(labelleft=number % columns == 0)
        drawn.append(axes)
    return figure


def _arms_panel(comparison: Comparison, axis: Axis) -> Panel:
    metric = comparison.rule.metric
    lines = list[PlotLine]()
    for colour, arm in enumerate(comparison.arms):
        curves = curves_of(arm, metric, axis)
        lines += seed_lines(f"{arm.name} ({len(curves)})", colour, curves)
    note = "evaluations of each seed, and their mean; in brackets the number of seeds"
    if has_mean_interval(lines):
        note += f"; {MEAN_INTERVAL_WORDS}"
    return Panel(
        "arms",
        _TITLES[metric],
        "share" if metric == "success_rate" else "number",
        tuple(lines),
        note=note,
        x_label=_x_label(axis),
    )


def _difference_panel(comparison: Comparison, difference: Difference, axis: Axis) -> Panel:
    by_name = {arm.name: arm for arm in comparison.arms}
    arm = by_name[difference.arm]
    against = by_name[difference.against]
    ours, theirs = _curves(arm, against, comparison, axis)
    places = places_of([*ours, *theirs])
    lines = list[PlotLine]()
    note = ""
    if len(places):
        one = values_at(ours, places)
        two = values_at(theirs, places)
        interval = None
        if min(len(ours), len(theirs)) >= LEAST_SEEDS:
            level = 1 - comparison.rule.alpha
            ends = []
            for our, their in zip(one.T, two.T, strict=True):
                is_paired = comparison.rule.paired
                found = paired_values(our - their) if is_paired else unpaired_values(our, their)
                ends.append(found.interval(level) or (np.nan, np.nan))
            low, high = np.array(ends, dtype=np.float64).T
            interval = (low, high)
            note = f"with the {percent(level)} interval at each place"
        colour = list(by_name).index(difference.arm)
        gain = one.mean(axis=0) - two.mean(axis=0)
        lines.append(PlotLine(difference.arm, colour, places, gain, interval=interval))
    is_success = comparison.rule.metric == "success_rate"
    return Panel(
        "difference",
        f"{difference.arm} - {difference.against}",
        "difference" if is_success else "number",
        tuple(lines),
        note=note,
        x_label=_x_label(axis),
    )


def _x_label(axis: Axis) -> str:
    return f"{'emulator frames' if axis == 'frames' else 'timesteps'} of all runs"


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
