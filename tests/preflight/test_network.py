"""The formulas against SB3's own policy."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy

from game_rl.preflight.network import NatureCnn

SHAPES = [(4, 72, 80), (4, 84, 84), (12, 144, 160), (1, 36, 36), (2, 37, 50)]


def policy_of(shape: tuple[int, int, int], n_actions: int) -> ActorCriticCnnPolicy:
    space = spaces.Box(0, 255, shape, np.uint8)
    return ActorCriticCnnPolicy(space, spaces.Discrete(n_actions), lambda _: 1e-3)


def network_of(shape: tuple[int, int, int], n_actions: int = 9) -> NatureCnn:
    channels, height, width = shape
    return NatureCnn(channels=channels, height=height, width=width, n_actions=n_actions)


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


def test_the_step_grows_with_the_batch_and_always_holds_the_minibatch() -> None:
    small, large = (network_of((4, 72, 80)).step_blocks(size, bf16=False) for size in (64, 128))
    for moment, blocks in small.items():
        assert sum(blocks) <= sum(large[moment])
        assert blocks[0] == 64 * 4 * 72 * 80


def test_the_step_of_a_gpu_has_the_measured_numbers() -> None:
    # facts of torch 2.13: 9 bytes a number going forward, 5 O + 12 A1 going back
    assert network_of((12, 144, 160)).gpu_step_bytes(1) == 119_040_672 // 4 + 276_480
    assert network_of((12, 144, 160)).gpu_step_bytes(2048) == 2048 * 2_488_320
    assert network_of((4, 144, 160)).gpu_step_bytes(2048) == 2048 * 984_960
