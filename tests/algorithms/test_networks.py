"""Torch's own optimisers are the oracle."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import assume, given
from hypothesis import strategies as st
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.common.torch_layers import NatureCNN
from torch import nn

from game_rl.algorithms import networks
from game_rl.algorithms.networks import LeanNatureCNN
from game_rl.algorithms.policies import LeanCnnPolicy
from game_rl.system.placement import Precision


def space(channels: int = 4, height: int = 72, width: int = 80) -> spaces.Box:
    return spaces.Box(0, 255, (channels, height, width), np.uint8)


def pair(observations: spaces.Box, precision: Precision) -> tuple[NatureCNN, LeanNatureCNN]:
    """SB3's network and ours with the same weights."""
    plain, ours = NatureCNN(observations), LeanNatureCNN(observations, precision=precision)
    ours.load_state_dict(plain.state_dict())
    return plain, ours


def pictures(observations: spaces.Box, n: int = 8) -> torch.Tensor:
    return torch.randint(0, 256, (n, *observations.shape), dtype=torch.uint8)


def gradients(network: torch.nn.Module, observations: torch.Tensor) -> torch.Tensor:
    network(observations).square().sum().backward()
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])


def nearest_to_zero(network: NatureCNN, observations: torch.Tensor) -> float:
    """The smallest input of a ReLU. Rounding may put such a one on the other side of zero."""
    smallest: list[float] = []

    def look(_: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
        smallest.append(inputs[0].abs().min().item())

    relus = [module for module in network.modules() if isinstance(module, torch.nn.ReLU)]
    hooks = [relu.register_forward_pre_hook(look) for relu in relus]
    network(observations)
    for hook in hooks:
        hook.remove()
    return min(smallest)


@given(
    st.integers(1, 4),
    st.integers(36, 60),
    st.integers(36, 60),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_float32_is_naturecnn_for_every_picture_size(
    channels: int, height: int, width: int, channels_last: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    seen = space(channels, height, width)
    plain, ours = pair(seen, "float32")
    if channels_last:
        ours.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    observations = pictures(seen, 2)
    torch.testing.assert_close(ours(observations), plain(observations / 255.0))
    assume(nearest_to_zero(plain, observations / 255.0) > 2e-6)
    theirs = gradients(plain, observations / 255.0)
    found = gradients(ours, observations)
    torch.testing.assert_close(found, theirs, rtol=1e-4, atol=1e-5)
    assert (found - theirs).norm() <= 1e-5 * theirs.norm()


def test_bytes_and_floats_are_seen_alike() -> None:
    _, ours = pair(space(), "float32")
    observations = pictures(space())
    floats = observations.float()
    torch.testing.assert_close(ours(floats), ours(observations))
    assert torch.equal(floats, observations.float())  # left as they were


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("height", "width"), [(72, 80), (37, 40), (40, 37), (38, 38), (37, 41)])
def test_stacks_that_share_frames_are_seen_where_they_are(
    height: int, width: int, first: int
) -> None:
    _, ours = pair(space(4, height, width), "float32")
    frames = torch.randint(0, 256, (3, 5, height, width), dtype=torch.uint8)
    stacks = frames[:, first : first + 4]
    assert torch.equal(ours(stacks), ours(stacks.clone()))


def test_features_agree_within_the_eight_bits_of_a_bfloat16() -> None:
    plain, ours = pair(space(), "bf16")
    observations = pictures(space(), 16)
    expected, found = plain(observations / 255.0), ours(observations)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 0.02 * expected.abs().max()
    assert not torch.equal(found, expected)


def test_gradients_in_bfloat16_point_the_same_way_and_are_float32() -> None:
    plain, ours = pair(space(), "bf16")
    observations = pictures(space(), 16)
    found = gradients(ours, observations)
    assert found.dtype == torch.float32
    expected = gradients(plain, observations / 255.0)
    assert torch.nn.functional.cosine_similarity(found, expected, dim=0) > 0.99


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_state_dict_is_sb3s(precision: Precision) -> None:
    plain, ours = pair(space(), precision)
    assert list(ours.state_dict()) == list(plain.state_dict())


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_rollout_is_played_with_the_newest_weights(precision: Precision) -> None:
    """Weights are prepared once for a rollout, but never outlive an update or a restore."""
    _, ours = pair(space(), precision)
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.1, fused=True)
    observations = pictures(space())
    for change in ("update", "restore", None):
        ours.train()
        ours(observations).sum().backward()
        if change == "update":
            optimizer.step()
        ours.eval()
        if change == "restore":
            with torch.no_grad():
                ours(observations)
            ours.load_state_dict(NatureCNN(space()).state_dict())
        fresh = LeanNatureCNN(space(), precision=precision).eval()
        fresh.load_state_dict(ours.state_dict())
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(ours(observations), fresh(observations))


def policies() -> tuple[ActorCriticCnnPolicy, LeanCnnPolicy]:
    """SB3's and ours with the same weights, in which the actions differ a little."""
    actions = spaces.Discrete(5)
    plain = ActorCriticCnnPolicy(space(), actions, lambda _: 1e-4)
    assert isinstance(plain.action_net, nn.Linear)
    torch.nn.init.normal_(plain.action_net.weight, std=0.5)
    ours = LeanCnnPolicy(space(), actions, lambda _: 1e-4, precision="float32")
    ours.load_state_dict(plain.state_dict())
    return plain, ours


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_policy_acts_as_sb3s_from_the_same_random_numbers(deterministic: bool) -> None:
    observations, decided = pictures(space(), 64), []
    for policy in policies():
        torch.manual_seed(7)
        with torch.no_grad():
            decided.append([policy(observations, deterministic) for _ in range(3)])
    for theirs, ours in zip(*decided, strict=True):
        assert torch.equal(theirs[0], ours[0])
        torch.testing.assert_close(ours[1:], theirs[1:], rtol=1e-4, atol=1e-4)


def test_a_policy_judges_actions_as_sb3s() -> None:
    observations, actions = pictures(space(), 32), torch.arange(32) % 5
    theirs, ours = (policy.evaluate_actions(observations, actions) for policy in policies())
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_threads_may_ask_a_policy_at_once() -> None:
    _, policy = policies()
    batches = [pictures(space(), 32) for _ in range(8)]
    actions = torch.zeros(32, dtype=torch.int64)
    alone = [policy.evaluate_actions(batch, actions)[1] for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda batch: policy.evaluate_actions(batch, actions)[1], batches))
    torch.testing.assert_close(together, alone)


PAIRS = [
    pytest.param(networks.Adam, torch.optim.Adam, {"fused": True}, id="Adam-fused"),
    pytest.param(networks.Adam, torch.optim.Adam, {"eps": 1e-5}, id="Adam"),
    pytest.param(networks.RAdam, torch.optim.RAdam, {"lr": 0.01}, id="RAdam"),
]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))


def learn(network: nn.Module, optimizer: torch.optim.Optimizer, steps: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        optimizer.zero_grad()
        network(torch.randn(4, 7, generator=generator)).square().sum().backward()
        optimizer.step()


def assert_equal(ours: nn.Module, theirs: nn.Module) -> None:
    for name, weight in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], weight), name


@pytest.mark.parametrize(("our_class", "their_class", "arguments"), PAIRS)
def test_the_numbers_are_those_of_torch_and_so_is_the_state(
    our_class: Callable[..., torch.optim.Optimizer],
    their_class: Callable[..., torch.optim.Optimizer],
    arguments: dict[str, Any],
) -> None:
    ours, theirs, others = network(), network(), network()
    our_optimizer = our_class(ours.parameters(), **arguments)
    their_optimizer = their_class(theirs.parameters(), **arguments)
    learn(ours, our_optimizer, 10, seed=1)
    learn(theirs, their_optimizer, 10, seed=1)
    assert_equal(ours, theirs)

    # go on from the other's state
    others.load_state_dict(theirs.state_dict())
    other_optimizer = our_class(others.parameters(), **arguments)
    other_optimizer.load_state_dict(deepcopy(their_optimizer.state_dict()))
    learn(others, other_optimizer, 10, seed=2)
    learn(theirs, their_optimizer, 10, seed=2)
    assert_equal(others, theirs)


@pytest.mark.parametrize(("our_class", "their_class", "arguments"), PAIRS)
def test_a_step_leaves_the_weights_as_leaves_that_need_gradients(
    our_class: Callable[..., torch.optim.Optimizer],
    their_class: type[torch.optim.Optimizer],  # noqa: ARG001
    arguments: dict[str, Any],
) -> None:
    trained = network()
    learn(trained, our_class(trained.parameters(), **arguments), 2, seed=1)
    assert all(weight.is_leaf and weight.requires_grad for weight in trained.parameters())
    assert torch.is_grad_enabled()
