import statistics
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from game_rl.callbacks.evaluation import Evaluation, better_of, evaluate
from tests.callbacks.conftest import tiny_vec_env
from tests.tiny_env import EPISODE_LENGTH, TinyEnv


class Scripted:
    """Plays a fixed list of actions round and round, whatever it sees."""

    def __init__(self, actions: list[int]) -> None:
        self._actions = actions
        self._calls = 0

    def predict(
        self,
        observation: np.ndarray,
        state: object = None,  # noqa: ARG002
        episode_start: object = None,  # noqa: ARG002
        deterministic: bool = False,  # noqa: ARG002
    ) -> tuple[np.ndarray, None]:
        action = self._actions[self._calls % len(self._actions)]
        self._calls += 1
        return np.full(len(observation), action), None


class Drawing:
    """Draws each action from torch's global generator, unless it is asked not to."""

    def predict(
        self,
        observation: np.ndarray,
        state: object = None,  # noqa: ARG002
        episode_start: object = None,  # noqa: ARG002
        deterministic: bool = False,
    ) -> tuple[np.ndarray, None]:
        if deterministic:
            return np.zeros(len(observation), np.int64), None
        return torch.randint(2, (len(observation),)).numpy(), None


@pytest.mark.parametrize("n_envs", [1, 2, 3])
def test_evaluation_agrees_with_a_plain_loop_over_episodes(n_envs: int) -> None:
    actions = [0, 1, 1, 0, 1, 1, 0]
    found = evaluate(
        Scripted(actions), tiny_vec_env(n_envs), episodes=6, deterministic=True, seed=0
    )

    rewards, successes = [], []
    script = Scripted(actions)
    for _ in range(6 // n_envs):
        env = TinyEnv()
        env.reset(seed=0)
        episode = [script.predict(np.zeros(1))[0][0] for _ in range(EPISODE_LENGTH)]
        results = [env.step(action) for action in episode]
        rewards += [sum(result[1] for result in results)] * n_envs
        successes += [results[-1][4]["is_success"]] * n_envs
    assert found.mean_reward == pytest.approx(np.mean(rewards))
    assert found.std_reward == pytest.approx(np.std(rewards))
    assert found.success_rate == pytest.approx(np.mean(successes))
    assert (found.mean_length, found.episodes) == (EPISODE_LENGTH, 6)


def test_the_same_seed_draws_the_same_actions_and_another_one_others() -> None:
    def played(seed: int) -> list[Evaluation]:
        torch.rand(3)  # wherever the training is
        return [
            evaluate(Drawing(), tiny_vec_env(), episodes=12, deterministic=way, seed=seed)
            for way in (False, True, False)
        ]

    first, likeliest, again = played(5)
    assert first == again
    assert first == played(5)[0]
    assert first != played(6)[0]
    assert (likeliest.mean_reward, likeliest.deterministic) == (0, True)


def test_an_evaluation_draws_none_of_the_trainings_random_numbers() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    evaluate(Drawing(), tiny_vec_env(), episodes=3, deterministic=False, seed=0)
    assert torch.equal(torch.rand(3), expected)


def an_evaluation(rewards: list[float], *, deterministic: bool) -> Evaluation:
    return Evaluation(
        deterministic=deterministic,
        rewards=tuple(rewards),
        lengths=(1,) * len(rewards),
        successes=(),
        seconds=0.0,
    )


REWARDS = st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=30)


@given(REWARDS, REWARDS)
def test_drawing_wins_only_by_more_than_one_standard_error(
    likeliest: list[float], drawn: list[float]
) -> None:
    played = [
        an_evaluation(likeliest, deterministic=True),
        an_evaluation(drawn, deterministic=False),
    ]
    gain = statistics.fmean(drawn) - statistics.fmean(likeliest)
    error = sqrt(
        statistics.variance(likeliest) / len(likeliest) + statistics.variance(drawn) / len(drawn)
    )
    if gain != pytest.approx(error, abs=1e-9):
        assert better_of(played).deterministic == (gain <= error)


def test_one_episode_says_nothing_of_how_much_they_vary() -> None:
    played = [an_evaluation([0.0], deterministic=True), an_evaluation([9.0], deterministic=False)]
    assert better_of(played).deterministic


def test_the_only_way_is_the_better_one() -> None:
    drawn = an_evaluation([0.0, 1.0], deterministic=False)
    assert better_of([drawn]) is drawn
