"""Torch's own optimisers are the oracle."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from game_rl.algorithms import networks

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
    our_class: type[torch.optim.Optimizer],
    their_class: type[torch.optim.Optimizer],
    arguments: dict[str, object],
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
    our_class: type[torch.optim.Optimizer],
    their_class: type[torch.optim.Optimizer],  # noqa: ARG001
    arguments: dict[str, object],
) -> None:
    trained = network()
    learn(trained, our_class(trained.parameters(), **arguments), 2, seed=1)
    assert all(weight.is_leaf and weight.requires_grad for weight in trained.parameters())
    assert torch.is_grad_enabled()
