"""The policy that plays against the one that has learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import TypeAdapter
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor
from stable_baselines3.dqn import CnnPolicy
from torch import nn

from game_rl.algorithms.make_algorithm import make_algorithm, make_policy
from game_rl.algorithms.networks import NormedNatureCNN
from game_rl.algorithms.policies import DQNPolicy, PQNPolicy, load_q_network
from game_rl.config.algorithms import AlgorithmConfig, LayerNorm
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import CheckpointError
from game_rl.files.run_dir import RunDir
from tests.tiny_env import FRAME, TinyEnv

ALGORITHMS: list[dict[str, Any]] = [
    {"name": "ppo", "n_steps": 4, "batch_size": 4},
    *(
        {"layer_norm": layer_norm, **algorithm}
        for layer_norm in ("none", "channels", "picture")
        for algorithm in (
            {"name": "dqn", "replay": {"capacity": 100}, "learning_starts": 8, "batch_size": 4},
            {"name": "pqn", "n_steps": 4, "batch_size": 4},
        )
    ),
]


def trained(algorithm: AlgorithmConfig, folder: Path) -> BaseAlgorithm:
    config = RunConfig(
        game="duel", total_timesteps=32, run_dir=folder, device="cpu", algorithm=algorithm
    )
    stacked = VecFrameStack(DummyVecEnv([TinyEnv] * 2), 4, channels_order="first")
    model = make_algorithm(
        config,
        VecMonitor(stacked),
        RunDir(folder),
        observation_format=ObservationFormat(FramePacking(FRAME), 4),
        stream="training",
    )
    model.learn(32)
    model.logger.close()
    return model


@pytest.mark.parametrize(
    "values", ALGORITHMS, ids=lambda a: f"{a['name']} {a.get('layer_norm', '')}"
)
def test_the_policy_that_plays_takes_the_weights_and_acts_as_the_one_that_learned(
    values: dict[str, Any], tmp_path: Path
) -> None:
    config: AlgorithmConfig = TypeAdapter(AlgorithmConfig).validate_python(values)
    model = trained(config, tmp_path)
    assert isinstance(model.action_space.shape, tuple)
    policy = make_policy(config, model.observation_space, model.action_space)
    policy.load_state_dict(model.policy.state_dict())
    stacks = torch.randint(0, 256, (200, 4, *FRAME[1:]), dtype=torch.uint8).numpy()
    found, expected = (p.predict(stacks, deterministic=True)[0] for p in (policy, model.policy))
    assert (found == expected).mean() >= 0.99  # values that are as good as equal may swap
    assert len(set(expected)) <= model.action_space.n  # type: ignore[attr-defined]


SHAPE = (4, 44, 52)
SPACE = spaces.Box(0, 255, SHAPE, np.uint8)
ACTIONS = spaces.Discrete(7)
NORMS = ("none", "channels", "picture")


def pictures(n: int = 5) -> torch.Tensor:
    return torch.randint(0, 256, (n, *SHAPE), dtype=torch.uint8)


def dqn_policy(layer_norm: LayerNorm = "none") -> DQNPolicy:
    policy = DQNPolicy(SPACE, ACTIONS, lambda _: 1e-3, layer_norm=layer_norm)
    return policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def pqn_policy(layer_norm: LayerNorm = "channels") -> PQNPolicy:
    policy = PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3, layer_norm=layer_norm)
    for parameter in policy.q_net.features_extractor.norms.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)  # as if it had learned
    return policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def test_the_lean_q_network_is_sb3s() -> None:
    lean, sb3 = dqn_policy(), CnnPolicy(SPACE, ACTIONS, lambda _: 1e-3)
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
    )
    fast.load_state_dict(exact.state_dict())
    x = pictures()
    torch.testing.assert_close(exact(x), fast(x), rtol=0.1, atol=0.1)
    assert fast(x).dtype == torch.float32


def test_weights_begin_with_the_spread_of_he_and_the_last_layers_of_lecun() -> None:
    torch.manual_seed(0)
    policy = PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3)
    layers = [layer for layer in policy.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer in layers:
        gain = 1.0 if layer is policy.q_net.q_net[0] else 2.0
        spread = (gain / layer.weight[0].numel()) ** 0.5
        assert layer.weight.std().item() == pytest.approx(spread, rel=0.05)
        assert not layer.bias.any()
    assert len(layers) == 5


def test_the_policy_plays_the_best_action() -> None:
    policy, x = PQNPolicy(SPACE, ACTIONS, lambda _: 1e-3), pictures()
    actions, _ = policy.predict(x.numpy())
    np.testing.assert_array_equal(actions, policy(x).detach().numpy().argmax(axis=1))


@pytest.mark.parametrize("layer_norm", NORMS)
def test_dqn_begins_as_sb3_does_and_its_norms_at_one_and_zero(layer_norm: LayerNorm) -> None:
    policies = []
    kinds: tuple[tuple[Any, dict[str, LayerNorm]], ...] = (
        (DQNPolicy, {"layer_norm": layer_norm}),
        (CnnPolicy, {}),
    )
    for kind, arguments in kinds:
        torch.manual_seed(3)
        policies.append(kind(SPACE, ACTIONS, lambda _: 1e-3, **arguments))
    ours, theirs = (policy.state_dict() for policy in policies)
    for name, tensor in ours.items():
        if ".norms." in name:
            assert torch.equal(tensor, torch.full_like(tensor, float(name.endswith("weight"))))
        else:
            assert torch.equal(tensor, theirs[name]), name
    assert [name for name in ours if ".norms." not in name] == list(theirs)
    assert isinstance(policies[0].optimizer, torch.optim.Adam)


@pytest.mark.parametrize("layer_norm", NORMS)
def test_weights_pass_from_pqn_to_dqn_and_back(layer_norm: LayerNorm) -> None:
    pqn, dqn, other = pqn_policy(layer_norm), dqn_policy(layer_norm), pqn_policy(layer_norm)
    x = pictures()
    with torch.no_grad():
        for policy in (pqn, dqn, other):
            policy.set_training_mode(False)
        expected = pqn(x)
        for network in (dqn.q_net, dqn.q_net_target, other):
            assert not torch.equal(network(x), expected)  # and it keeps its weights as multiplied
        load_q_network(dqn, pqn.state_dict())
        load_q_network(other, dqn.state_dict())
        for network in (dqn.q_net, dqn.q_net_target, other):
            assert torch.equal(network(x), expected)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            pqn_policy("channels"),
            dqn_policy("none"),
            r"q_net\.features_extractor\.norms\.0\.weight is 32 in the checkpoint, but missing in",
        ),
        (
            dqn_policy("none"),
            pqn_policy("picture"),
            r"norms\.0\.weight is missing in the checkpoint, but 32x10x12 in this run",
        ),
        (
            pqn_policy("channels"),
            dqn_policy("picture"),
            r"norms\.0\.weight is 32 in the checkpoint, but 32x10x12 in this run",
        ),
        (
            PQNPolicy(SPACE, spaces.Discrete(3), lambda _: 1e-3),
            dqn_policy("channels"),
            r"q_net\.q_net\.0\.weight is 3x512 in the checkpoint, but 7x512 in this run",
        ),
    ],
    ids=["to none", "from none", "other norm", "other actions"],
)
def test_another_network_is_refused_with_the_first_tensor_that_does_not_fit(
    source: DQNPolicy | PQNPolicy, target: DQNPolicy | PQNPolicy, message: str
) -> None:
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(CheckpointError, match=message):
        load_q_network(target, source.state_dict())
    assert all(torch.equal(before[name], t) for name, t in target.state_dict().items())
