import pytest

from game_rl.errors import ExperimentError
from game_rl.experiments.jobs.job_files import Played
from game_rl.experiments.records import fitness_of


def played(rewards: tuple[float, ...], successes: tuple[bool, ...]) -> Played:
    return Played(seed=3, deterministic=True, rewards=rewards, successes=successes)


def test_fitness_is_the_metric_asked_for() -> None:
    episodes = played((1.0, 2.0, 6.0), (True, False, True))
    assert fitness_of(episodes, "mean_reward").value == 3.0
    assert fitness_of(episodes, "success_rate").value == pytest.approx(2 / 3)


def test_a_game_without_successes_cannot_be_judged_by_them() -> None:
    with pytest.raises(ExperimentError, match="metric: mean_reward"):
        fitness_of(played((1.0, 2.0), ()), "success_rate")
    assert fitness_of(played((1.0, 2.0), ()), "mean_reward").success_rate is None
