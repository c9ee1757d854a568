"""The lean Q-networks against SB3's own and against layers put together one by one."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.dqn import CnnPolicy
from torch import nn

from game_rl.algorithms.networks import policy_arguments
from game_rl.algorithms.q_networks import LayerNorm, LeanQPolicy, NormedNatureCNN, PQNPolicy

SHAPE = (4, 44, 52)
SPACE = spaces.Box(0, 255, SHAPE, np.uint8)
ACTIONS = spaces.Discrete(7)


def pictures(n: int = 5) -> torch.Tensor:
    return torch.randint(0, 256, (n, *SHAPE), dtype=torch.uint8)


def lean_policy() -> LeanQPolicy:
    policy = LeanQPolicy(SPACE, ACTIONS, lambda _: 1e-3, **policy_arguments("float32"))
    return policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def test_the_lean_q_network_is_sb3s() -> None:
    lean, sb3 = lean_policy(), CnnPolicy(SPACE, ACTIONS, lambda _: 1e-3)
    sb3.load_state_dict(lean.state_dict())
    x = pictures()
    for ours, theirs in ((lean.q_net, sb3.q_net), (lean.q_net_target, sb3.q_net_target)):
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
    sb3.load_state_dict(lean.state_dict())
    np.testing.assert_array_equal(lean.predict(x.numpy())[0], sb3.predict(x.numpy())[0])


@pytest.mark.parametrize("layer_norm", ["channels", "picture", "none"])
@pytest.mark.parametrize("trains", [True, False])
def test_layers_are_normalised_where_pqn_does(layer_norm: LayerNorm, *, trains: bool) -> None:
    network = NormedNatureCNN(SPACE, layer_norm=layer_norm)
    for parameter in network.norms.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    network.train(trains)
    x, norms = pictures(), list(network.norms)
    expected = x.float() / 255
    for layer in (*network.cnn, *network.linear):
        if isinstance(layer, nn.ReLU) and norms:
            norm = norms.pop(0)
            axes = (1,) if layer_norm == "channels" else tuple(range(1, expected.ndim))
            centred = expected - expected.mean(axes, keepdim=True)
            scaled = centred / (centred.square().mean(axes, keepdim=True) + 1e-6).sqrt()
            shape = (-1,) + (1,) * (expected.ndim - 2) if layer_norm == "channels" else ()
            weight, bias = (p.reshape(shape) if shape else p for p in (norm.weight, norm.bias))
            expected = scaled * weight + bias
        expected = layer(expected)
    with torch.set_grad_enabled(trains):
        torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)


def test_without_norms_it_is_nature_cnn() -> None:
    ours = NormedNatureCNN(SPACE, layer_norm="none")
    theirs = NatureCNN(SPACE)
    theirs.load_state_dict(ours.state_dict())
    x = pictures()
    torch.testing.assert_close(ours(x), theirs(x.float() / 255), rtol=1e-4, atol=1e-5)


def test_bf16_is_near_float32() -> None:
    exact, fast = (
        PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3, precision=p) for p in ("float32", "bf16")
    )  # type: ignore[arg-type]
    fast.load_state_dict(exact.state_dict())
    x = pictures()
    torch.testing.assert_close(exact(x), fast(x), rtol=0.1, atol=0.1)
    assert fast(x).dtype == torch.float32


def test_weights_begin_with_the_spread_of_he_and_the_last_layers_of_lecun() -> None:
    torch.manual_seed(0)
    policy = PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3)
    layers = [layer for layer in policy.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer in layers:
        gain = 1.0 if layer is policy.head else 2.0
        spread = (gain / layer.weight[0].numel()) ** 0.5
        assert layer.weight.std().item() == pytest.approx(spread, rel=0.05)
        assert not layer.bias.any()
    assert len(layers) == 5


def test_the_policy_plays_the_best_action() -> None:
    policy, x = PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3), pictures()
    actions, _ = policy.predict(x.numpy())
    np.testing.assert_array_equal(actions, policy(x).detach().numpy().argmax(axis=1))
