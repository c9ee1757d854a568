import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import NatureCNN

from game_rl.algorithms.networks import Bf16NatureCNN, features_extractor
from game_rl.resources import cpu_has_bf16

SPACE = spaces.Box(0, 255, (4, 72, 80), "uint8")


@pytest.fixture
def pair() -> tuple[NatureCNN, Bf16NatureCNN]:
    """The same weights in both precisions."""
    plain, ours = NatureCNN(SPACE), Bf16NatureCNN(SPACE)
    ours.load_state_dict(plain.state_dict())
    return plain, ours


def test_features_agree_within_the_eight_bits_of_a_bfloat16(
    pair: tuple[NatureCNN, Bf16NatureCNN],
) -> None:
    plain, ours = pair
    pictures = torch.rand(16, *SPACE.shape)
    expected, found = plain(pictures), ours(pictures)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 0.02 * expected.abs().max()
    assert not torch.equal(found, expected)


def test_gradients_point_the_same_way_and_are_float32(
    pair: tuple[NatureCNN, Bf16NatureCNN],
) -> None:
    pictures = torch.rand(16, *SPACE.shape)
    gradients = []
    for network in pair:
        network(pictures).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in network.parameters()]))
    assert gradients[1].dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.99


def test_auto_takes_what_the_processor_is_fast_in() -> None:
    expected = Bf16NatureCNN if cpu_has_bf16() else NatureCNN
    assert features_extractor("auto", "cpu") is expected
    assert features_extractor("float32", "cpu") is NatureCNN
    assert features_extractor("bf16", "cpu") is Bf16NatureCNN
