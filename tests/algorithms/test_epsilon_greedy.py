import json

import numpy as np
import pytest

from game_rl.algorithms.rollout import EpsilonGreedy
from game_rl.config.algorithms import ExplorationConfig
from game_rl.schedules import Ramp, RestartingRamp

GREEDY = np.full(20_000, 3)


def make(seed: int = 0) -> EpsilonGreedy:
    epsilon = RestartingRamp(Ramp(1.0, 0.1, timesteps=10))
    return EpsilonGreedy(epsilon, n_actions=5, rng=np.random.default_rng(seed))


def test_without_epsilon_every_action_stays() -> None:
    np.testing.assert_array_equal(make().explored(GREEDY, 0.0), GREEDY)


@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_epsilon_is_the_share_of_actions_drawn_evenly(epsilon: float) -> None:
    counts = np.bincount(make().explored(GREEDY, epsilon), minlength=5)
    expected = np.full(5, epsilon / 5 * len(GREEDY))
    expected[3] += (1 - epsilon) * len(GREEDY)
    deviation = np.sqrt(expected * (1 - expected / len(GREEDY)))
    assert (abs(counts - expected) < 5 * deviation).all()


def test_what_was_saved_goes_on_with_the_same_draws() -> None:
    one, other = make(0), make(1)
    one.explored(GREEDY, 0.5)
    other.load_state(json.loads(json.dumps(one.state())))
    np.testing.assert_array_equal(other.explored(GREEDY, 0.5), one.explored(GREEDY, 0.5))


def test_the_fraction_is_of_the_whole_run() -> None:
    config = ExplorationConfig(start=0.9, end=0.1, fraction=0.2)
    epsilon = config.schedule(timesteps=1_000)
    found = [epsilon.at(t) for t in (0, 100, 200, 1_000)]
    assert found == pytest.approx([0.9, 0.5, 0.1, 0.1])


def test_what_the_last_release_saved_goes_on() -> None:
    one, other = make(0), make(1)
    ramp = {"start": 1.0, "end": 0.1, "timesteps": 10, "began_at": 0}
    other.load_state(one.state() | {"epsilon": ramp})
    np.testing.assert_array_equal(other.explored(GREEDY, 0.5), one.explored(GREEDY, 0.5))


def test_restarts_are_at_timesteps_whatever_the_run_is_long() -> None:
    config = ExplorationConfig.model_validate(
        {"end": 0.1, "restarts": [{"at": 600, "start": 0.5, "over": 100}]}
    )
    for timesteps in (1_000, 2_000):
        epsilon = config.schedule(timesteps=timesteps)
        assert [epsilon.at(t) for t in (599, 600, 650, 700)] == pytest.approx([0.1, 0.5, 0.3, 0.1])
