"""The loss of a DQN with a teacher against plain formulas, and what the teacher's numbers mean."""

import copy
import json

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from torch.nn import functional

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.policies import PQNPolicy
from game_rl.algorithms.qdagger import (
    LAST_EVALUATIONS,
    Teacher,
    auto_temperature,
    divergence,
    teacher_weight,
)
from tests.algorithms.test_dqn import make
from tests.tiny_env import TinyEnv

VALUES = some.arrays(np.float32, (5, 3), elements=st.floats(-4, 4, width=32))
RATES = st.floats(0, 1)


def policy(seed: int = 3) -> PQNPolicy:
    torch.manual_seed(seed)
    assert isinstance(TinyEnv.action_space, spaces.Discrete)
    return PQNPolicy(TinyEnv.observation_space, TinyEnv.action_space, lambda _: 0.0)


def teacher(*, success_rate: float | None = 0.8, until: int | None = None) -> Teacher:
    return Teacher(policy(), temperature=0.25, weight=3.0, until=until, success_rate=success_rate)


def plain_softmax(values: np.ndarray, temperature: float) -> np.ndarray:
    powers = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


@given(student=VALUES, taught=VALUES, temperature=st.floats(0.2, 5))
def test_the_divergence_is_kullback_and_leiblers_and_pulls_at_each_action_by_the_difference(
    student: np.ndarray, taught: np.ndarray, temperature: float
) -> None:
    of_student, of_teacher = (
        plain_softmax(values.astype(np.float64), temperature) for values in (student, taught)
    )
    plain = (of_teacher * (np.log(of_teacher) - np.log(of_student))).sum()
    values = torch.tensor(student, requires_grad=True)
    found = divergence(values, torch.tensor(taught), temperature=temperature)
    assert found.item() == pytest.approx(plain, rel=1e-3, abs=1e-4)
    found.backward()
    expected = (of_student - of_teacher) / temperature
    np.testing.assert_allclose(values.grad, expected, atol=1e-4)


@given(weight=st.floats(0.1, 9), student=RATES, success=RATES, timestep=st.integers(0, 100))
def test_the_weight_is_the_formulas_and_a_function_of_its_arguments(
    weight: float, student: float, success: float, timestep: int
) -> None:
    found = teacher_weight(weight, student=student, teacher=success, timestep=timestep, until=50)
    if timestep >= 50:
        plain = 0.0
    elif success == 0:
        plain = weight
    else:
        plain = weight * (1 - min(student / success, 1.0))
    assert found == pytest.approx(plain, abs=1e-9)


def test_a_student_that_was_not_evaluated_counts_as_one_that_never_wins() -> None:
    assert teacher_weight(3.0, student=None, teacher=0.5, timestep=0, until=None) == 3.0
    assert teacher_weight(3.0, student=0.1, teacher=None, timestep=10**9, until=None) == 3.0


def test_the_weight_follows_the_mean_of_the_last_evaluations_and_so_over_a_break() -> None:
    one, rates = teacher(), [0.8, 0.0, 0.4, 0.2, 0.6]
    found = [one.weight_at(0)]
    for rate in rates:
        one.note_evaluation(rate)
        found.append(one.weight_at(0))
    means = [np.mean(rates[max(0, n - LAST_EVALUATIONS) : n]) for n in range(1, 6)]
    assert found == pytest.approx([3.0, *(3 * max(1 - mean / 0.8, 0) for mean in means)])
    other = teacher()
    other.load_state(json.loads(json.dumps(one.state())))
    for each in (one, other):
        each.note_evaluation(0.5)
    assert other.weight_at(7) == one.weight_at(7)


@given(
    values=some.arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(2, 6)),
        elements=st.integers(-50, 50).map(float),
    ),
    scale=st.floats(0.01, 100),
)
def test_half_of_the_situations_get_three_quarters_for_their_best_action(
    values: np.ndarray, scale: float
) -> None:
    n_best = (values == values.max(axis=1, keepdims=True)).sum(axis=1)
    if np.median(1 / n_best) <= 0.75 or np.median(np.ptp(values, axis=1)) == 0:
        with pytest.raises(ValueError, match="alike"):
            auto_temperature(values)
        return
    temperature = auto_temperature(values)
    median = np.median(plain_softmax(values, temperature).max(axis=1))
    assert median == pytest.approx(0.75, abs=1e-6)
    assert auto_temperature(values * scale) == pytest.approx(temperature * scale, rel=1e-6)


@pytest.mark.parametrize(
    "values", [np.zeros((9, 4)), np.ones((9, 1)), np.tile([5.0, 5, 0], (9, 1))]
)
def test_a_teacher_that_prefers_nothing_has_no_temperature(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match="several actions alike"):
        auto_temperature(values)


def naive_gradients(model: LeanDQN, weight: float, n_samples: int) -> list[torch.Tensor]:
    """Of the whole batch at once, with torch's own functions and no threads."""
    assert model.teacher is not None
    samples = model.replay_buffer.sample(n_samples)
    values = model.q_net(samples.observations)
    with torch.no_grad():
        best = model.q_net_target(samples.next_observations).max(1, keepdim=True).values
        targets = samples.rewards + (1 - samples.dones) * model.gamma * best
        taught = model.teacher.policy(samples.observations)
    td = functional.smooth_l1_loss(values.gather(1, samples.actions.long()), targets)
    goal = functional.softmax(taught / 0.25, 1)
    kl = (goal * (goal.log() - functional.softmax(values / 0.25, 1).log())).sum(1).mean()
    return list(torch.autograd.grad(td + weight * kl, list(model.q_net.parameters())))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_gradient_is_that_of_the_naive_loss(n_threads: int) -> None:
    model = make(max_grad_norm=1e9)
    model.learn(60)
    model.teacher = teacher()
    model.teacher.note_evaluation(0.2)
    weight = 3.0 * (1 - 0.2 / 0.8)
    before = copy.deepcopy(model.replay_buffer.store.state_dict())
    expected = naive_gradients(model, weight, 100)
    model.replay_buffer.store.load_state_dict(before)  # the same draws again
    with torch_threads(n_threads):
        model.train(1, 100)
    for mine, naive in zip(model.q_net.parameters(), expected, strict=True):
        torch.testing.assert_close(mine.grad, naive, rtol=1e-3, atol=1e-5)
    assert model.logger.name_to_value["train/teacher_weight"] == pytest.approx(weight)


def test_a_weight_of_zero_is_learning_without_a_teacher_bit_for_bit() -> None:
    alone, taught = make(), make()
    taught.teacher = teacher(until=0)
    for model in (alone, taught):
        model.learn(120)
    pairs = zip(alone.q_net.parameters(), taught.q_net.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.slow
def test_a_teacher_draws_the_student_to_its_actions_and_learns_nothing_itself() -> None:
    model = make(learning_rate=1e-3)
    model.teacher = teacher()
    weights = [parameter.clone() for parameter in model.teacher.policy.parameters()]
    model.learn(600)
    assert all(map(torch.equal, weights, model.teacher.policy.parameters()))
    observations = model.replay_buffer.sample(100).observations
    chosen, taught = (
        network(observations).argmax(1) for network in (model.q_net, model.teacher.policy)
    )
    assert (chosen == taught).float().mean() > 0.9
