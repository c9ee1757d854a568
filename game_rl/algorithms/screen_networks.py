"""The networks of screens other than NatureCNN, which is in `networks`."""

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from game_rl.algorithms.casting_layers import Convolution, Dense, relu, small_layers
from game_rl.algorithms.encoder_sizes import IMPALA_CHANNELS
from game_rl.config.algorithms import LayerNorm
from game_rl.system.placement import Precision


class _ScreenNetwork(BaseFeaturesExtractor):
    """A network of bytes, which multiplies in float32 or bfloat16.

    Observations are numbers from 0 to 255, uint8 or float32 [batch, C, H, W]. Features are float32
    [batch, features_dim].
    """

    layers: nn.Sequential

    def __init__(
        self, observation_space: spaces.Box, features_dim: int, *, precision: Precision
    ) -> None:
        super().__init__(observation_space, features_dim)
        self._number = torch.bfloat16 if precision == "bf16" else torch.float32

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(observations.to(self._number) / 255)
        return features.float()


class SmallCNN(_ScreenNetwork):
    """Two convolutions and a linear layer, for pictures that are too small for NatureCNN."""

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        *,
        precision: Precision = "float32",
        layer_norm: LayerNorm = "none",
    ) -> None:
        super().__init__(observation_space, features_dim, precision=precision)
        channels, height, width = observation_space.shape
        self.layers = small_layers((channels, height, width), features_dim, layer_norm)


class ImpalaCNN(_ScreenNetwork):
    """The large network of IMPALA, without its LSTM.

    Three sections of 16, 32 and 32 channels: a convolution, max-pooling that halves the picture,
    and two residual blocks of two convolutions each, all of 3 x 3. A ReLU and a linear layer with a
    ReLU follow.

    Source: Espeholt et al. 2018 (IMPALA), figure 3, right. The linear layer has 256 units there.
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        *,
        precision: Precision = "float32",
        layer_norm: LayerNorm = "none",
    ) -> None:
        super().__init__(observation_space, features_dim, precision=precision)
        channels, height, width = observation_space.shape
        layers: list[nn.Module] = []
        for filters in IMPALA_CHANNELS:
            height = -(-height // 2)
            width = -(-width // 2)
            layers += [Convolution(channels, filters, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
            layers += [_Residual((filters, height, width), layer_norm) for _ in range(2)]
            channels = filters
        linear = Dense(channels * height * width, features_dim)
        self.layers = nn.Sequential(
            *layers,
            relu(layer_norm, channels, height, width),
            nn.Flatten(),
            linear,
            relu(layer_norm, features_dim),
        )


class _Residual(nn.Module):
    """Adds two convolutions, each after a ReLU, to its input."""

    def __init__(self, shape: tuple[int, int, int], layer_norm: LayerNorm) -> None:
        super().__init__()
        first, second = (Convolution(shape[0], shape[0], 3, padding=1) for _ in range(2))
        self.layers = nn.Sequential(
            relu(layer_norm, *shape, inplace=False),  # as the input is added below
            first,
            relu(layer_norm, *shape),
            second,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        changed: torch.Tensor = self.layers(x)
        return changed.add_(x)
