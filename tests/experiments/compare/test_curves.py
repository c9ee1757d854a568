import numpy as np

from game_rl.experiments.compare.comparison_arms import Outcome, Point, Score
from game_rl.experiments.compare.comparison_plot import Curve, places_of, plotted_curve, values_at


def test_curves_meet_where_all_of_them_have_values() -> None:
    one = Curve(np.array([0.0, 10, 20]), np.array([0.0, 1, 2]))
    two = Curve(np.array([5.0, 15, 25]), np.array([5.0, 5, 5]))
    places = places_of([one, two])
    assert places.tolist() == [5, 10, 15, 20]
    assert values_at([one, two], places).tolist() == [[0.5, 1, 1.5, 2], [5, 5, 5, 5]]
    assert len(places_of([])) == 0
    apart = Curve(np.array([30.0]), np.array([1.0]))
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
