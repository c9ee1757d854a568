"""Random network distillation, compared with sums as the papers write them."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.curiosity.curiosity_feature import CuriosityInputs
from game_rl.curiosity.distillation import Distillation, Moments
from game_rl.envs.observation import ObservationFormat
from tests.algorithms.observations import ACTIONS, EVERYTHING, VECTORS, WITHOUT_SCREEN, drawn

N_ENVS, N_STEPS = 3, 7
GAMMA, LAM, COEF = 0.9, 0.8, 0.5
FORMATS = pytest.mark.parametrize(
    "form", [VECTORS, WITHOUT_SCREEN, EVERYTHING], ids=["vector", "parts", "everything"]
)


def distillation(form: ObservationFormat, seed: int = 0) -> Distillation:
    return Distillation(
        form, coef=COEF, gamma=GAMMA, n_envs=N_ENVS, seed=seed, device=torch.device("cpu")
    )


def filled(form: ObservationFormat, seed: int = 0) -> PackedRolloutBuffer:
    """A full rollout of random observations, each of which begins an episode."""
    buffer = PackedRolloutBuffer(
        N_STEPS, form.space, ACTIONS, "cpu", LAM, 0.5, N_ENVS, observation_format=form
    )
    rng = np.random.default_rng(seed)
    for step in range(N_STEPS):
        observations = drawn(form, N_ENVS, seed=100 * seed + step)
        flags = observations["status"][:, 2:]  # stored in a bit each
        flags[:] = flags > 0
        buffer.add(
            observations,
            rng.integers(4, size=N_ENVS),
            rng.random(N_ENVS, np.float32),
            np.ones(N_ENVS, np.float32),
            torch.zeros(N_ENVS),
            torch.zeros(N_ENVS),
        )
    buffer.advantages[:] = rng.normal(size=buffer.advantages.shape)
    return buffer


def parameters(found: Distillation) -> Iterator[nn.Parameter]:
    for network in (found.target, found.predictor, found.critic):
        yield from network.parameters()


def plain_rows(form: ObservationFormat, buffer: PackedRolloutBuffer) -> NDArray[np.float64]:
    """What the networks get, one observation and one number after the other; by env and step."""
    inputs = CuriosityInputs.of(form)
    rows: list[list[float]] = []
    for index in range(N_ENVS * N_STEPS):
        seen = buffer.samples(np.array([index])).observations
        assert isinstance(seen, dict)
        row: list[float] = []
        if inputs.screen is not None:
            row += seen["screen"][0, -inputs.screen[0] :].flatten().tolist()
        for name, part in form.parts:
            for value in seen[name].flatten().tolist():
                if part.kind == "categories" and part.n_values <= 256:
                    row += [float(value == n) for n in range(part.n_values)]
                else:
                    row.append(value)
        rows.append(row)
    return np.array(rows, np.float64).reshape(N_ENVS, N_STEPS, -1)


@FORMATS
def test_the_advantages_of_a_rollout_are_those_of_the_paper(form: ObservationFormat) -> None:
    buffer = filled(form)
    own = buffer.advantages.T.copy()
    found = distillation(form)
    target, predictor, critic = (
        distillation(form).target,
        distillation(form).predictor,
        distillation(form).critic,
    )
    buffer.number_by_env()
    rows = plain_rows(form, buffer)
    assert rows.shape[2] == CuriosityInputs.of(form).n_inputs
    after = np.concatenate((rows[:, 1:], rows[:, -1:]), axis=1)
    every = after.reshape(N_ENVS * N_STEPS, -1)
    mean, deviation = every.mean(0), np.sqrt(every.var(0) + 1e-4)

    def of(network: nn.Module, row: NDArray[np.float64]) -> NDArray[np.float32]:
        scaled = np.clip((row - mean) / deviation, -5, 5).astype(np.float32)
        with torch.no_grad():
            return network(torch.from_numpy(scaled[None])).numpy()[0]

    errors = np.zeros((N_ENVS, N_STEPS))
    values = np.zeros((N_ENVS, N_STEPS))
    sums = []
    for env in range(N_ENVS):
        total = 0.0
        for step in range(N_STEPS):
            wrong = of(predictor, after[env, step]) - of(target, after[env, step])
            errors[env, step] = np.mean(wrong**2)
            values[env, step] = of(critic, rows[env, step])[0]
            total = GAMMA * total + errors[env, step]
            sums.append(total)
    rewards = errors / np.std(sums)
    wanted = own.copy()
    for env in range(N_ENVS):
        for step in range(N_STEPS):
            for later in range(step, N_STEPS):
                following = values[env, min(later + 1, N_STEPS - 1)]
                delta = rewards[env, later] + GAMMA * following - values[env, later]
                wanted[env, step] += COEF * (GAMMA * LAM) ** (later - step) * delta
    found.act(buffer)
    np.testing.assert_allclose(
        buffer.advantages.reshape(N_ENVS, N_STEPS), wanted, rtol=2e-3, atol=2e-3
    )
    assert found.error == pytest.approx(errors.mean(), rel=1e-3)


@FORMATS
def test_what_was_saved_goes_on_bit_for_bit_and_draws_no_random_numbers(
    form: ObservationFormat,
) -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    whole, part = distillation(form), distillation(form)
    for found in (whole, part):
        found.act(filled(form))
    resumed = distillation(form, seed=9)
    saved = type(part.saved()).model_validate_json(part.saved().model_dump_json())
    assert resumed.load(saved)
    assert resumed.saved() == saved
    last = [filled(form, seed=2), filled(form, seed=2)]
    whole.act(last[0])
    resumed.act(last[1])
    assert whole.saved() == resumed.saved()
    assert whole.saved() != saved
    np.testing.assert_array_equal(last[0].advantages, last[1].advantages)
    torch.testing.assert_close(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002


@FORMATS
def test_the_sizes_that_the_forecast_knows_are_those_of_the_networks(
    form: ObservationFormat,
) -> None:
    inputs = CuriosityInputs.of(form)
    found = distillation(form)
    n_outputs = (64, 64, 1)
    networks = (found.target, found.predictor, found.critic)
    for network, n in zip(networks, n_outputs, strict=True):
        assert sum(each.numel() for each in network.parameters()) == inputs.n_parameters(n)
    floats = sum(len(each) // 4 for each in found.saved().tensors.values())
    assert floats == inputs.saved_floats(N_ENVS)


def test_networks_of_other_observations_are_not_taken_over() -> None:
    found = distillation(VECTORS)
    before = found.saved()
    assert not found.load(distillation(WITHOUT_SCREEN).saved())
    assert found.saved() == before


def test_what_was_seen_often_is_less_new() -> None:
    found = distillation(VECTORS)
    errors = []
    for _ in range(300):
        found.act(filled(VECTORS))
        errors.append(found.error)
    assert errors[-1] < 0.5 * errors[0]


def test_moments_are_those_of_all_rows() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(3.0, 2.0, (50, 4)).astype(np.float32))
    moments = Moments((4,), torch.device("cpu"))
    for part in rows.split([7, 20, 23]):
        moments.update(part)
    torch.testing.assert_close(moments.mean, rows.mean(0))
    torch.testing.assert_close(moments.var, rows.var(0, unbiased=False))
