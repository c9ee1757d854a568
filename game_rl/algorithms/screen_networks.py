"""Layers that compute in their input's number format, and networks of screens made of them.

NatureCNN is in `networks`. Weights are float32, inputs float32 or bfloat16.
"""

from math import prod

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch.nn import functional

from game_rl.algorithms.encoder_sizes import IMPALA_CHANNELS
from game_rl.config.algorithms import LayerNorm
from game_rl.system.placement import Precision

FLAX_EPSILON = 1e-6
"""Epsilon of flax.linen.LayerNorm, which PQN's authors use."""

_STRIDE = 2  # of the convolutions of `small_layers`
_PADDING = 1


class Convolution(nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert self.bias is not None
        weight = self.weight.to(x.dtype)
        bias = self.bias.to(x.dtype)
        return functional.conv2d(x, weight, bias, self.stride, self.padding)


class Dense(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class NormedReLU(nn.LayerNorm):
    """Layer normalisation of vectors or pictures, and a ReLU.

    Args:
        shape: shape of one input, [n] or [C, H, W].
        over_channels: whether each position of a picture is normalised over its channels, instead
            of over channels and positions together. A vector is normalised over all its numbers.
    """

    def __init__(self, shape: tuple[int, ...], *, over_channels: bool) -> None:
        super().__init__(shape[:1] if over_channels else shape, eps=FLAX_EPSILON)
        self._moves_channels = over_channels and len(shape) > 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.to(x.dtype)
        bias = self.bias.to(x.dtype)
        if not self._moves_channels:
            return functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps).relu_()
        # x is channels_last in memory, so neither permute moves anything, as long as the ReLU comes
        # before the second one
        x = x.permute(0, 2, 3, 1)
        x = functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)
        return x.relu_().permute(0, 3, 1, 2)


def relu(layer_norm: LayerNorm, *shape: int, inplace: bool = True) -> nn.Module:
    """Return a ReLU for inputs of this shape, after normalisation if there is one.

    Args:
        inplace: whether the input may be overwritten.
    """
    if layer_norm == "none":
        return nn.ReLU(inplace)
    return NormedReLU(shape, over_channels=layer_norm == "channels")


def small_layers(
    shape: tuple[int, int, int], features: int, layer_norm: LayerNorm
) -> nn.Sequential:
    """Return the layers from pictures [batch, *shape] to features [batch, features].

    Two convolutions of 3 x 3 with stride 2 and padding 1, of 32 and 64 filters, and a linear layer,
    each with a ReLU. Pictures may be as small as a single pixel.
    """
    channels, *sides = shape
    layers: list[nn.Module] = []
    for filters in (32, 64):
        layers += [Convolution(channels, filters, 3, _STRIDE, _PADDING)]
        channels = filters
        sides = [-(-side // _STRIDE) for side in sides]
        layers += [relu(layer_norm, channels, *sides)]
    linear = Dense(channels * prod(sides), features)
    return nn.Sequential(*layers, nn.Flatten(), linear, relu(layer_norm, features))


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
