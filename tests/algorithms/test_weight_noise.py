"""Noise on the weights of policies, against its formula number by number."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from game_rl.algorithms.policies import DQNPolicy, make_policy
from game_rl.algorithms.weight_noise import add_weight_noise
from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, PPOConfig, PQNConfig

OBSERVATIONS = spaces.Box(0, 255, (4, 36, 36), np.uint8)


@pytest.mark.parametrize(
    "config",
    [
        PPOConfig(),
        PQNConfig(name="pqn", layer_norm="picture"),
        DQNConfig(name="dqn", layer_norm="channels"),
    ],
    ids=lambda config: config.name,
)
def test_each_layers_weights_move_by_sigma_times_their_size_and_nothing_else_does(
    config: AlgorithmConfig,
) -> None:
    torch.manual_seed(1)
    policy = make_policy(config, OBSERVATIONS, spaces.Discrete(5))
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    add_weight_noise(policy, 0.1, np.random.default_rng(7))
    rng, moved = np.random.default_rng(7), set()
    for name, layer in policy.named_modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and "target" not in name:
            old = before[f"{name}.weight"].numpy()
            size = (old.astype(np.float64) ** 2).mean() ** 0.5
            expected = old + 0.1 * size * rng.standard_normal(old.shape, dtype=np.float32)
            found = layer.weight.detach().numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
            assert (found - old).std() == pytest.approx(0.1 * size, rel=0.1)
            moved.add(layer.weight.data_ptr())
    for name, tensor in policy.state_dict().items():
        if "target" not in name and tensor.data_ptr() not in moved:
            assert torch.equal(tensor, before[name]), name
    if isinstance(policy, DQNPolicy):
        for one, other in zip(
            policy.q_net.parameters(), policy.q_net_target.parameters(), strict=True
        ):
            assert torch.equal(one, other)


def test_the_generator_says_it_all() -> None:
    weights = []
    for seed in (3, 3, 4):
        torch.manual_seed(1)
        policy = make_policy(PQNConfig(name="pqn"), OBSERVATIONS, spaces.Discrete(5))
        add_weight_noise(policy, 0.02, np.random.default_rng(seed))
        weights.append(next(policy.parameters()).detach().numpy().copy())
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
