"""When a vec step is shown, and when the policy's values are written."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from game_rl.algorithms.policies import policy_values
from game_rl.training.extensions.live_extension import LiveCallback


class FakeTraining:
    """A live file and the training's envs, on paper, and both clocks."""

    def __init__(self, *, is_under_way: bool) -> None:
        self.layout = SimpleNamespace(fps=4.0)
        self.watched, self.looks = True, 0
        self.vec_steps, self._ahead = 0, 2 if is_under_way else 1
        self.shown: list[int] = []
        self.written: list[int] = []
        self.learns_from: list[int] = []
        self.now = self.cpu = self.cost = 0.0

    def is_watched(self) -> bool:
        self.looks += 1
        return self.watched

    def show_next_step(self) -> int:
        self.shown.append(self.vec_steps + self._ahead)
        return self.shown[-1]

    def write_values(self, timestep: int, rows: np.ndarray) -> None:
        assert rows.shape == (2, 1 + 2)
        self.written.append(timestep)
        self.cpu += self.cost

    def write_learns_from(self, timesteps: int) -> None:
        self.learns_from.append(timesteps)

    def play(self, callback: LiveCallback, n_steps: int, *, step_s: float) -> None:
        for _ in range(n_steps):
            self.vec_steps += 1
            self.now += step_s
            assert callback._on_step()


@pytest.fixture
def model(make_model: Callable[..., PPO]) -> PPO:
    model: Any = make_model(2)
    model._last_obs = model.env.reset()
    model.shown_values = lambda: policy_values(model, model._last_obs)  # as a LeanAlgorithm's
    return model


def callback_of(training: Any, model: Any, learns_from: int = 0) -> LiveCallback:
    callback = LiveCallback(
        training,
        training,
        learns_from=learns_from,
        clock=lambda: training.now,
        cpu_clock=lambda: training.cpu,
    )
    callback.init_callback(model)
    return callback


@pytest.mark.parametrize("is_under_way", [False, True])
def test_steps_are_shown_four_times_a_second_with_their_values(
    is_under_way: bool, model: Any
) -> None:
    training = FakeTraining(is_under_way=is_under_way)
    training.play(callback_of(training, model), 1_000, step_s=0.01)  # ten seconds
    assert 38 <= len(training.shown) <= 41
    assert training.looks == len(training.shown)
    assert training.written == training.shown[: len(training.written)]
    assert len(training.written) >= len(training.shown) - 1


def test_after_a_shown_step_one_stays_unshown(model: Any) -> None:
    """Its screens can then be read beside their values, however slow the steps are."""
    training = FakeTraining(is_under_way=False)
    training.play(callback_of(training, model), 20, step_s=1.0)
    assert training.shown == list(range(2, 22, 2))
    assert training.written == training.shown


def test_unwatched_nothing_is_shown_and_the_file_is_looked_at_four_times_a_second(
    model: Any,
) -> None:
    training = FakeTraining(is_under_way=True)
    training.watched = False
    training.play(callback_of(training, model), 2_000, step_s=0.005)
    assert (training.shown, training.written) == ([], [])
    assert 38 <= training.looks <= 41


def test_values_take_at_most_a_hundredth_of_a_cpu(model: Any) -> None:
    training = FakeTraining(is_under_way=False)
    training.cost = 0.05
    training.play(callback_of(training, model), 6_000, step_s=0.01)  # a minute
    assert 8 < len(training.written) <= 1 + 60 / (100 * 0.05)
    assert len(training.shown) > 220
    assert set(training.written) < set(training.shown)


@pytest.mark.parametrize(
    ("learns_from", "said"), [(4_096, [4_096, 0, 4_096, 0]), (0, [])], ids=["rollout", "replay"]
)
def test_the_file_says_what_the_network_learns_from(
    learns_from: int, said: list[int], model: Any
) -> None:
    """A viewer that goes while the network learns leaves nothing behind; nobody's cost is 0."""
    training = FakeTraining(is_under_way=False)
    callback = callback_of(training, model, learns_from)
    for watched in ((True, True), (False, False), (True, False)):
        training.watched = watched[0]
        callback.on_rollout_end()
        training.watched = watched[1]
        callback.on_rollout_start()
    assert training.learns_from == said


def test_values_are_the_policys_own_and_no_random_number_is_drawn(model: Any) -> None:
    before = torch.get_rng_state()
    rows = policy_values(model, model._last_obs)
    assert torch.equal(torch.get_rng_state(), before)
    tensors, _ = model.policy.obs_to_tensor(model._last_obs)
    with torch.no_grad():
        np.testing.assert_allclose(rows[:, :1], model.policy.predict_values(tensors))
        logits = model.policy.get_distribution(tensors).distribution.logits
    np.testing.assert_allclose(rows[:, 1:], np.exp(logits.numpy()), rtol=1e-5)


def test_a_network_that_draws_random_numbers_draws_the_same_ones_afterwards(model: Any) -> None:
    model.policy.features_extractor.register_forward_hook(
        lambda _module, _inputs, output: output + torch.randn_like(output)
    )
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    policy_values(model, model._last_obs)
    assert torch.equal(torch.rand(5), expected)
