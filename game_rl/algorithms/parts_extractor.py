"""The features of an observation with parts."""

from collections.abc import Mapping
from math import prod
from typing import Any, Literal

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch.nn import functional

from game_rl.algorithms.encoder_sizes import embedding_width
from game_rl.algorithms.networks import NormedNatureCNN
from game_rl.algorithms.screen_networks import ImpalaCNN, SmallCNN, small_layers
from game_rl.config.algorithms import LayerNorm
from game_rl.config.network import ScreenNetwork
from game_rl.envs.observation import SCREEN
from game_rl.system.placement import Precision

SCREEN_NETWORKS: Mapping[ScreenNetwork, type[NormedNatureCNN | ImpalaCNN | SmallCNN]] = {
    "nature": NormedNatureCNN,
    "impala": ImpalaCNN,
    "small": SmallCNN,
}


def part_kind(
    name: str, space: spaces.Space[Any]
) -> Literal["screen", "vector", "categories", "grid"]:
    """Return what a part of an observation is, which its space says."""
    assert isinstance(space, spaces.Box)
    if name == SCREEN:
        return "screen"
    if space.dtype.kind == "f":
        return "vector"
    return "grid" if len(space.shape) == 3 else "categories"


class PartsExtractor(BaseFeaturesExtractor):
    """Makes features of each part of an observation, and joins them in the order of the space.

    The stack of screens goes through the network `screen`, a vector is flattened, categories are
    embedded (`CategoriesEmbedding`), and a grid goes through a `GridCNN`.

    Without categories and grids, and with the screens' network `nature`, it computes the same
    function as SB3's CombinedExtractor with `cnn_output_dim` of `features_dim`, and has the same
    state dict.

    Observations are a dict of [batch, *shape of the part]. Screens are numbers from 0 to 255, and
    categories and grids whole numbers, of any type. Features are float32 [batch, n].

    Args:
        features_dim: features of the screens, and of each grid.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        features_dim: int = 512,
        *,
        screen: ScreenNetwork = "nature",
        precision: Precision = "float32",
        layer_norm: LayerNorm = "none",
    ) -> None:
        super().__init__(observation_space, features_dim=1)  # corrected below
        self.extractors = nn.ModuleDict()
        n_features = 0
        for name, space in observation_space.spaces.items():
            assert isinstance(space, spaces.Box)
            extractor: nn.Module
            match part_kind(name, space):
                case "screen":
                    network = SCREEN_NETWORKS[screen]
                    arguments = {"precision": precision, "layer_norm": layer_norm}
                    extractor = network(space, features_dim, **arguments)  # type: ignore[arg-type]  # of two types
                    n = features_dim
                case "vector":
                    extractor = nn.Flatten()
                    n = prod(space.shape)
                case "categories":
                    extractor = CategoriesEmbedding(space)
                    n = prod(space.shape) * extractor.embedding.embedding_dim
                case "grid":
                    extractor = GridCNN(space, features_dim, layer_norm)
                    n = features_dim
            # not `self.extractors[name] =`, which refuses names such as "values"
            self.extractors._modules[name] = extractor
            n_features += n
        self._features_dim = n_features

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        features = [
            extractor(observations[name]) for name, extractor in self.extractors._modules.items()
        ]
        return torch.cat(features, dim=1)


def _embedding(space: spaces.Box) -> nn.Embedding:
    n_values = int(space.high.max()) + 1
    return nn.Embedding(n_values, embedding_width(n_values))


class CategoriesEmbedding(nn.Module):
    """Embeds each category; [batch, n] becomes float32 [batch, n * width]."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__()
        self.embedding = _embedding(space)

    def forward(self, categories: torch.Tensor) -> torch.Tensor:
        return functional.embedding(categories.long(), self.embedding.weight).flatten(1)


class GridCNN(nn.Module):
    """Embeds each cell, then two convolutions and a linear layer; see `small_layers`.

    Grids are [batch, stack, H, W], features float32 [batch, features]. The channels are the
    embeddings of each grid of the stack. It computes in float32.
    """

    def __init__(self, space: spaces.Box, features: int, layer_norm: LayerNorm) -> None:
        super().__init__()
        self.embedding = _embedding(space)
        stack, height, width = space.shape
        channels = stack * self.embedding.embedding_dim
        self.layers = small_layers((channels, height, width), features, layer_norm)

    def forward(self, grids: torch.Tensor) -> torch.Tensor:
        cells = functional.embedding(grids.long(), self.embedding.weight)
        batch, stack, height, width, size = cells.shape
        # channels_last in memory, as the convolutions want it; one grid is only viewed as such
        cells = cells.permute(0, 2, 3, 1, 4).reshape(batch, height, width, stack * size)
        features: torch.Tensor = self.layers(cells.permute(0, 3, 1, 2))
        return features
