"""Layers that compute in their input's number format, float32 or bfloat16, on float32 weights."""

from math import prod

import torch
from torch import nn
from torch.nn import functional

from game_rl.config.algorithms import LayerNorm

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
