"""The features of observations with parts, beside SB3's CombinedExtractor and plain sums."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.dqn.policies import MultiInputPolicy

from game_rl.algorithms.encoder_sizes import embedding_width
from game_rl.algorithms.parts_extractor import GridCNN, PartsExtractor, part_kind
from game_rl.algorithms.policies import DQNPolicy, LeanCnnPolicy, PQNPolicy
from game_rl.config.network import Network, NetworkConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.games.parts.part_format import PartFormat
from game_rl.system.placement import Precision
from tests.algorithms.observations import (
    ACTIONS,
    AS_SB3,
    EVERYTHING,
    VECTORS,
    WITHOUT_SCREEN,
    dict_space,
    drawn,
    tensors,
)


@pytest.mark.parametrize("form", [AS_SB3, VECTORS])
def test_screens_and_vectors_give_the_features_of_the_combined_extractor(
    form: ObservationFormat,
) -> None:
    space = dict_space(form)
    theirs, ours = CombinedExtractor(space, 32), PartsExtractor(space, 32)
    ours.load_state_dict(theirs.state_dict())
    observations = tensors(drawn(form, 7))
    expected = theirs(preprocess_obs(observations, space))
    assert ours.features_dim == theirs.features_dim == expected.shape[1]
    torch.testing.assert_close(ours(observations), expected)
    ours.eval()
    with torch.no_grad():  # with weights that are kept for small batches
        torch.testing.assert_close(ours(observations), expected)


def test_what_a_part_is_follows_from_its_space() -> None:
    found = {name: part_kind(name, one) for name, one in dict_space(EVERYTHING).spaces.items()}
    expected = {"screen": "screen"} | {name: part.kind for name, part in EVERYTHING.parts}
    assert found == expected


def test_every_part_has_its_features_in_the_order_of_the_space() -> None:
    extractor = PartsExtractor(dict_space(EVERYTHING), 16)
    observations = tensors(drawn(EVERYTHING, 3))
    widths = {
        "bag": 6 * 5,
        "screen": 16,
        "species": 6 * 16,
        "status": 5,
        "tiles": 16,
        "visited": 16,
    }
    features = extractor(observations)
    assert features.shape == (3, extractor.features_dim) == (3, sum(widths.values()))
    start = 0
    for name, width in widths.items():
        changed = observations | {name: tensors(drawn(EVERYTHING, 3, seed=1))[name]}
        differs = (extractor(changed) != features).any(dim=0)
        assert differs[start : start + width].any()
        differs[start : start + width] = False
        assert not differs.any()
        start += width


def test_categories_are_looked_up_one_by_one() -> None:
    extractor = PartsExtractor(dict_space(EVERYTHING), 16)
    observations = drawn(EVERYTHING, 3)
    table = extractor.extractors.get_submodule("species.embedding").weight
    categories = observations["species"].tolist()
    rows = [torch.cat([table[index] for index in each]) for each in categories]
    species = slice(30 + 16, 30 + 16 + 6 * 16)
    found = extractor(tensors(observations))[:, species]
    torch.testing.assert_close(found, torch.stack(rows))


def test_a_grid_is_convolved_as_plain_sums_say() -> None:
    part = PartFormat.of_indices("grid", (1, 5, 4), 3, is_stacked=True)
    form = ObservationFormat(None, 2, (("tiles", part),))
    space = dict_space(form)["tiles"]
    assert isinstance(space, spaces.Box)
    network, grids = GridCNN(space, 8, "none"), drawn(form, 1)["tiles"]
    table = network.embedding.weight.detach().numpy()
    x = np.concatenate([table[grids[0, k]].transpose(2, 0, 1) for k in range(2)])
    linear = network.layers[5]
    for convolution in (network.layers[0], network.layers[2]):
        x = plain_convolution(x, convolution)
    expected = linear.weight.detach().numpy() @ x.ravel() + linear.bias.detach().numpy()
    found = network(torch.from_numpy(grids)).detach().numpy()[0]
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-4, atol=1e-6)


def plain_convolution(x: np.ndarray, layer: Any) -> np.ndarray:
    """A 3 x 3 convolution with stride 2, padding 1 and ReLU, of one picture."""
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    height, width = -(-x.shape[1] // 2), -(-x.shape[2] // 2)
    y = np.empty((len(weight), height, width))
    for row in range(height):
        for column in range(width):
            window = padded[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
            y[:, row, column] = (weight * window).sum(axis=(1, 2, 3)) + bias
    return np.maximum(y, 0)


def test_the_names_of_a_modules_methods_are_good_names_of_parts() -> None:
    parts = tuple((name, VECTORS.parts[0][1]) for name in ("items", "type", "values"))
    form = ObservationFormat(None, 1, parts)
    assert PartsExtractor(dict_space(form)).features_dim == 15
    tensor = PartsExtractor(dict_space(form))(tensors(drawn(form, 2)))
    assert tensor.shape == (2, 15)


@pytest.mark.parametrize(
    ("n_values", "width"), [(2, 2), (3, 2), (4, 2), (5, 3), (256, 16), (65_536, 16)]
)
def test_an_embedding_is_as_wide_as_the_root_of_the_values_up_to_16(
    n_values: int, width: int
) -> None:
    assert embedding_width(n_values) == width


NETWORKS: list[Network] = [
    NetworkConfig(features=32),
    NetworkConfig(screen="small", features=32, hidden=(8,)),
    NetworkConfig(screen="impala", features=16, hidden=()),
]


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("form", [EVERYTHING, WITHOUT_SCREEN])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("layer_norm", ["none", "channels", "picture"])
def test_each_policy_learns_from_each_part(
    network: Network, form: ObservationFormat, precision: Precision, layer_norm: Any
) -> None:
    observations, space = tensors(drawn(form, 5)), dict_space(form)
    arguments: Any = {"network": network, "precision": precision}
    ppo = LeanCnnPolicy(space, ACTIONS, lambda _: 1e-3, **arguments)
    values, log_probs, _ = ppo.evaluate_actions(observations, torch.zeros(5))
    every: list[tuple[torch.nn.Module, torch.Tensor]] = [(ppo, values.sum() + log_probs.sum())]
    for kind in (DQNPolicy, PQNPolicy):
        policy = kind(space, ACTIONS, lambda _: 1e-3, layer_norm=layer_norm, **arguments)
        every.append((policy.q_net, policy.q_net(observations).square().sum()))
    for module, loss in every:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
        loss.backward()
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name


def test_the_policy_of_ppo_is_sb3s_with_the_same_weights() -> None:
    space, observations = dict_space(AS_SB3), drawn(AS_SB3, 6)
    theirs = MultiInputActorCriticPolicy(
        space, ACTIONS, lambda _: 1e-3, features_extractor_kwargs={"cnn_output_dim": 512}
    )
    ours = LeanCnnPolicy(space, ACTIONS, lambda _: 1e-3)
    ours.load_state_dict(theirs.state_dict())
    batch, actions = tensors(observations), torch.arange(6) % 4
    for found, expected in zip(
        ours.evaluate_actions(batch, actions), theirs.evaluate_actions(batch, actions), strict=True
    ):
        assert expected is not None
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.predict_values(batch), theirs.predict_values(batch))
    np.testing.assert_array_equal(
        ours.predict(observations, deterministic=True)[0],
        theirs.predict(observations, deterministic=True)[0],
    )
    torch.manual_seed(1)
    drawn_here = ours(batch)
    torch.manual_seed(1)
    drawn_there = theirs(batch)
    for found, expected in zip(drawn_here, drawn_there, strict=True):
        torch.testing.assert_close(found, expected)


def test_the_policy_of_dqn_is_sb3s_with_the_same_weights() -> None:
    space, observations = dict_space(AS_SB3), drawn(AS_SB3, 6)
    theirs = MultiInputPolicy(
        space,
        ACTIONS,
        lambda _: 1e-3,
        net_arch=[24],
        features_extractor_kwargs={"cnn_output_dim": 48},
    )
    network = NetworkConfig(hidden=(24,), features=48)
    ours = DQNPolicy(space, ACTIONS, lambda _: 1e-3, network=network)
    ours.load_state_dict(theirs.state_dict())
    batch = tensors(observations)
    torch.testing.assert_close(ours.q_net(batch), theirs.q_net(batch))
    torch.testing.assert_close(ours.q_net_target(batch), theirs.q_net_target(batch))


def test_hidden_layers_are_normalised_before_their_relu() -> None:
    network = NetworkConfig(hidden=(8, 6))
    space, batch = dict_space(VECTORS), tensors(drawn(VECTORS, 4))
    q_net = PQNPolicy(space, ACTIONS, lambda _: 1e-3, network=network).q_net
    x = batch["status"]
    for place in (0, 3):
        linear, norm, relu = list(q_net.q_net)[place : place + 3]
        assert isinstance(relu, torch.nn.ReLU)
        assert isinstance(norm, torch.nn.LayerNorm)
        x = linear(x)
        variance = x.var(dim=1, keepdim=True, unbiased=False)
        x = ((x - x.mean(dim=1, keepdim=True)) / (variance + 1e-6).sqrt()).clamp(min=0)
    torch.testing.assert_close(q_net(batch), q_net.q_net[-1](x))
