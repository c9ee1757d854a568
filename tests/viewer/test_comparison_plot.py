"""What is drawn where: values read back from the axes, beside those that went in."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from game_rl.experiments.compare.comparison import (
    Arm,
    Outcome,
    Pair,
    Point,
    Rule,
    Score,
    compare_arms,
)
from game_rl.viewer.comparison_plot import draw, plot_png, plotted_curve
from game_rl.viewer.panels import SeedCurve, places_of, values_at


def test_curves_meet_where_all_of_them_have_values() -> None:
    one = SeedCurve(np.array([0.0, 10, 20]), np.array([0.0, 1, 2]))
    two = SeedCurve(np.array([5.0, 15, 25]), np.array([5.0, 5, 5]))
    places = places_of([one, two])
    assert places.tolist() == [5, 10, 15, 20]
    assert values_at([one, two], places).tolist() == [[0.5, 1, 1.5, 2], [5, 5, 5, 5]]
    assert len(places_of([])) == 0
    apart = SeedCurve(np.array([30.0]), np.array([1.0]))
    assert len(places_of([one, apart])) == 0


def test_a_curve_is_over_what_everybody_played() -> None:
    point = Point(timesteps=1, total_timesteps=4, total_frames=32, mean_reward=2.5)
    outcome = Outcome(
        name="x",
        seed=0,
        score=Score(1, None, 3),
        curve=(point,),
        timesteps=1,
        total_timesteps=4,
        total_frames=32,
    )
    curve = plotted_curve(outcome, "mean_reward", "frames")
    assert curve is not None
    assert (curve.x.tolist(), curve.y.tolist()) == ([32.0], [2.5])
    assert plotted_curve(outcome, "success_rate", "frames") is None


TOTALS = (10, 20)


def arm(name: str, *, start: float, end: float, seeds: int = 8) -> Arm:
    """Of every seed the same straight line."""
    points = tuple(
        Point(timesteps=t, total_timesteps=t, total_frames=8 * t, mean_reward=y, success_rate=y)
        for t, y in zip(TOTALS, (start, end), strict=True)
    )
    outcome = Outcome(
        name=name,
        seed=0,
        score=Score(end, end, 100),
        curve=points,
        timesteps=20,
        total_timesteps=20,
        total_frames=160,
    )
    return Arm(name, tuple(replace(outcome, seed=seed) for seed in range(seeds)))


ARMS = [
    arm("low", start=0.1, end=0.2),
    arm("middle", start=0.3, end=0.5),
    arm("high", start=0.5, end=0.9),
]


def figure_of(*pairs: Pair, arms: list[Arm] = ARMS) -> Figure:
    return draw(compare_arms(arms, Rule(metric="success_rate", paired=True), pairs), "timesteps")


def mean_line(axes: Axes) -> tuple[list[float], list[float]]:
    """The thick one."""
    line = max(axes.get_lines(), key=lambda line: line.get_linewidth())
    xs: Any = line.get_xdata()
    ys: Any = line.get_ydata()
    return [float(x) for x in xs], [round(float(y), 6) for y in ys]


def test_each_difference_has_a_panel_of_its_own() -> None:
    pairs = [("high", "low"), ("high", "middle"), ("middle", "low")]
    top, *panels = figure_of(*pairs).axes
    assert [text.get_text() for text in top.get_legend().get_texts()] == [
        "low (8)",
        "middle (8)",
        "high (8)",
    ]
    assert [panel.get_title() for panel in panels] == [f"{one} - {two}" for one, two in pairs]
    assert mean_line(panels[0]) == ([10, 20], [0.4, 0.7])
    assert mean_line(panels[1]) == ([10, 20], [0.2, 0.4])
    assert mean_line(panels[2]) == ([10, 20], [0.2, 0.3])
    assert [panel.get_ylim() for panel in panels] == [panels[0].get_ylim()] * 3
    assert [panel.get_xlim() for panel in panels] == [top.get_xlim()] * 3


def test_a_difference_has_a_band_from_eight_seeds_up() -> None:
    few = [arm("low", start=0.1, end=0.2, seeds=7), arm("high", start=0.5, end=0.9, seeds=7)]
    assert len(figure_of(("high", "low")).axes[1].collections) == 1
    assert len(figure_of(("high", "low"), arms=few).axes[1].collections) == 0


def test_one_arm_is_a_picture_without_differences() -> None:
    assert len(figure_of(arms=ARMS[:1]).axes) == 1
    comparison = compare_arms(ARMS[:1], Rule(metric="success_rate", paired=True), [])
    assert plot_png(comparison, "frames").startswith(b"\x89PNG")
