"""The formulas against SB3's own policy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.dqn import CnnPolicy

from game_rl.algorithms.policies import DQNPolicy, LeanCnnPolicy, PQNPolicy, policy_arguments
from game_rl.algorithms.sizes import NetworkSize
from game_rl.config.algorithms import LayerNorm
from game_rl.system.placement import Precision
from tests.precisions import PRECISIONS
from tests.preflight.torch_account import peak_of_tensors

SIDES = ((4, 72, 80), (4, 73, 83))
SHAPES = [(4, 72, 80), (4, 84, 84), (12, 144, 160), (1, 36, 36), (2, 37, 50)]


def policy_of(shape: tuple[int, int, int], n_actions: int) -> ActorCriticCnnPolicy:
    space = spaces.Box(0, 255, shape, np.uint8)
    return ActorCriticCnnPolicy(space, spaces.Discrete(n_actions), lambda _: 1e-3)


def network_of(shape: tuple[int, int, int], n_actions: int = 9) -> NetworkSize:
    channels, height, width = shape
    return NetworkSize(channels=channels, height=height, width=width, n_actions=n_actions)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_actions", [2, 9])
def test_parameters_are_those_of_the_policy(shape: tuple[int, int, int], n_actions: int) -> None:
    sizes = [p.numel() for p in policy_of(shape, n_actions).parameters()]
    network = network_of(shape, n_actions)
    assert network.parameters == sum(sizes)
    assert network.weights_bytes == 4 * sum(sizes)
    assert network.training_bytes == 16 * sum(sizes)
    assert network.largest_parameter <= max(sizes)


@pytest.mark.parametrize("shape", SHAPES)
def test_activations_are_what_the_convolutions_give(shape: tuple[int, int, int]) -> None:
    found = []
    layers = policy_of(shape, 9).features_extractor.cnn  # type: ignore[union-attr]
    picture = torch.zeros(1, *shape)
    for layer in layers:
        picture = layer(picture)
        if isinstance(layer, torch.nn.Conv2d):
            found.append(picture.numel())
    assert network_of(shape).activations == tuple(found)


def most_bytes(network: NetworkSize, batch_size: int, *, bf16: bool) -> int:
    return max(map(sum, network.step_blocks(batch_size, bf16=bf16).values()))


def profiled_peak(shape: tuple[int, int, int], batch_size: int, precision: Precision) -> int:
    """The most bytes in tensors that a gradient step makes, by torch's own account."""
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = LeanCnnPolicy(
        space, spaces.Discrete(9), lambda _: 1e-3, **policy_arguments(precision)
    ).to(memory_format=torch.channels_last)
    pictures = torch.zeros((batch_size, *shape), dtype=torch.uint8)

    def step() -> None:
        values, log_prob, _ = policy.evaluate_actions(pictures, torch.zeros(batch_size))
        (values.mean() - log_prob.mean()).backward()

    return peak_of_tensors(step)


@pytest.mark.parametrize("shape", [(4, 72, 80), (12, 144, 160), (4, 90, 98)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_step_is_what_torch_allocates(
    shape: tuple[int, int, int], precision: Precision
) -> None:
    network, batch_size, bf16 = network_of(shape), 128, precision == "bf16"
    gradients = 0 if bf16 else network.weights_bytes  # bf16 ones take the place of their weights
    expected = most_bytes(network, batch_size, bf16=bf16) + gradients
    assert profiled_peak(shape, batch_size, precision) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("bf16", [False, True])
def test_the_step_grows_with_the_batch(*, bf16: bool) -> None:
    small, large = (network_of((4, 72, 80)).step_blocks(size, bf16=bf16) for size in (64, 128))
    for moment, blocks in small.items():
        assert sum(blocks) < sum(large[moment])


def test_pictures_whose_sides_are_no_multiples_of_four_are_copied_once_more() -> None:
    whole, odd = (network_of(shape).step_blocks(8, bf16=False) for shape in SIDES)
    assert whole["to blocks"] == [8 * 4 * 72 * 80, 4 * 8 * 4 * 72 * 80]
    assert odd["to blocks"] == [8 * 4 * 72 * 80] * 2 + [4 * 8 * 4 * 72 * 80]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_with_a_target_is_that_of_dqn(shape: tuple[int, int, int]) -> None:
    policy = CnnPolicy(spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(7), lambda _: 1e-3)
    network = replace(network_of(shape, 7), has_value_head=False, has_target=True)
    both = 4 * sum(p.numel() for p in policy.parameters())
    one = 4 * sum(p.numel() for p in policy.q_net.parameters())
    assert (network.policy_bytes, network.weights_bytes) == (both, one)
    assert network.training_bytes == both + 3 * one  # two moments, and gradients


def pqn_policy(
    shape: tuple[int, int, int], layer_norm: LayerNorm, precision: Precision = "float32"
) -> PQNPolicy:
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = PQNPolicy(
        space, spaces.Discrete(9), lambda _: 1e-3, layer_norm=layer_norm, precision=precision
    )
    return policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer_norm", ["channels", "picture", "none"])
def test_parameters_of_a_normed_network_are_those_of_pqn(
    shape: tuple[int, int, int], layer_norm: LayerNorm
) -> None:
    network = replace(network_of(shape), has_value_head=False, layer_norm=layer_norm)
    policy = pqn_policy(shape, layer_norm)
    assert network.parameters == sum(p.numel() for p in policy.parameters())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer_norm", ["channels", "picture", "none"])
def test_parameters_of_a_normed_network_with_a_target_are_those_of_dqn(
    shape: tuple[int, int, int], layer_norm: LayerNorm
) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = DQNPolicy(space, spaces.Discrete(9), lambda _: 1e-3, layer_norm=layer_norm)
    network = replace(
        network_of(shape), has_value_head=False, has_target=True, layer_norm=layer_norm
    )
    assert network.policy_bytes == sum(p.nbytes for p in policy.parameters())
    assert network.weights_bytes == sum(p.nbytes for p in policy.q_net.parameters())


@pytest.mark.parametrize("shape", [(4, 72, 80), (12, 144, 160), (4, 84, 84)])
@pytest.mark.parametrize("layer_norm", ["channels", "picture"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_step_of_a_normed_network_is_what_torch_allocates(
    shape: tuple[int, int, int], layer_norm: LayerNorm, precision: Precision
) -> None:
    network = replace(network_of(shape), has_value_head=False, layer_norm=layer_norm)
    policy, batch_size = pqn_policy(shape, layer_norm, precision), 128
    pictures, bf16 = torch.zeros((batch_size, *shape), dtype=torch.uint8), precision == "bf16"
    found = peak_of_tensors(lambda: policy(pictures).mean().backward())
    gradients = 0 if bf16 else network.weights_bytes  # bf16 ones take the place of their weights
    expected = most_bytes(network, batch_size, bf16=bf16) + gradients
    assert found == pytest.approx(expected, rel=0.03)
