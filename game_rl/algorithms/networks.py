"""NatureCNN with fewer copies, with or without normalisation, and its optimisers.

Torch imports its compiler (torch._dynamo, sympy) when the first optimiser is created and when it
takes a step, only to forbid compiling the two. That wastes a second and 70 MB. These optimisers
leave the import out and compute the same numbers as torch's.
"""

import inspect
from typing import Self

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import NatureCNN
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer

from game_rl.algorithms.screen_networks import FLAX_EPSILON
from game_rl.config.algorithms import LayerNorm
from game_rl.system.placement import Precision


class _Eager(Optimizer):
    """An optimiser whose methods are unwrapped from the decorators that forbid compiling them."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)


class Adam(_Eager, torch.optim.Adam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class RAdam(_Eager, torch.optim.RAdam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.RAdam.step))


_Weights = list[tuple[torch.Tensor, torch.Tensor]]


class LeanNatureCNN(NatureCNN):
    """NatureCNN that takes bytes as input and multiplies in float32 or bfloat16.

    It computes the same function as NatureCNN and has the same state dict. The first convolution,
    8 x 8 with stride 4, is computed as the equivalent 2 x 2 convolution of 4 x 4 blocks, whose many
    channels suit the processor (twice as fast in bfloat16). The division by 255 is folded into the
    few weights of that convolution, so the observations are copied to floats only once. The ReLUs
    work in place.

    In bfloat16 the weights, gradients, optimiser and features stay float32.

    In evaluation mode without gradients, which is how SB3 collects a rollout, the prepared weights
    are cached until the next call of `train` or `eval`. For the few observations of a vec step,
    preparing them takes as long as the multiplication.

    Observations are numbers from 0 to 255, uint8 or float32 [batch, C, H, W]. Features are float32
    [batch, features_dim].
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        normalized_image: bool = False,
        *,
        precision: Precision = "float32",
    ) -> None:
        super().__init__(observation_space, features_dim, normalized_image)
        self._number = torch.bfloat16 if precision == "bf16" else torch.float32
        self._kept: _Weights = []
        self.register_load_state_dict_post_hook(_forget_weights)  # type: ignore[no-untyped-call]

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        if self.training or torch.is_grad_enabled():
            weights = self._weights()
        else:
            self._kept = weights = self._kept or _for_small_batches(self._weights())
        first, second, third, last = weights
        x = _blocks(observations, self._number)
        x = self._activated(functional.conv2d(x, *first), 0)
        x = self._activated(functional.conv2d(x, *second, stride=2), 1)
        x = self._activated(functional.conv2d(x, *third), 2)
        return self._activated(functional.linear(x.flatten(1), *last), 3).float()

    def _activated(self, x: torch.Tensor, layer: int) -> torch.Tensor:  # noqa: ARG002 - see NormedNatureCNN
        return x.relu_()

    def _weights(self) -> _Weights:
        """Prepare (weight, bias) of each layer for the multiplication."""
        pairs: _Weights = []
        for layer in (*self.cnn, *self.linear):
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                weight, bias = layer.parameters()
                pairs.append((weight if pairs else _block_weight(weight) / 255.0, bias))
        return [(weight.to(self._number), bias.to(self._number)) for weight, bias in pairs]

    def train(self, mode: bool = True) -> Self:
        self._kept = []
        return super().train(mode)


def _for_small_batches(weights: _Weights) -> _Weights:
    """Store the linear layer's weight column by column, if it is float32.

    For up to 32 rows Intel's processors then multiply twice as fast. AMD's are somewhat slower,
    which did not show in rollouts.
    """
    *convolutions, (weight, bias) = weights
    if weight.dtype == torch.float32:
        weight = weight.t().contiguous().t()
    return [*convolutions, (weight, bias)]


def _forget_weights(network: LeanNatureCNN, _: object) -> None:
    network.train(network.training)


def _blocks(pictures: torch.Tensor, number: torch.dtype) -> torch.Tensor:
    """Rearrange [N, C, H, W] into [N, 16 C, H // 4, W // 4] of type `number`.

    The 16 numbers of a 4 x 4 block become channels, in the order (row, C, column). The result is
    channels_last in memory.
    """
    n, channels, height, width = pictures.shape
    rows = height // 4
    columns = width // 4
    pictures = pictures[:, :, : 4 * rows, : 4 * columns]
    if pictures.dtype == torch.uint8:  # moving four bytes at a time is four times as fast
        quads = _quads(pictures).view(n, channels, rows, 4, columns, 1)
    else:
        quads = pictures.reshape(n, channels, rows, 4, columns, 4)
    blocks = quads.permute(0, 2, 4, 3, 1, 5).contiguous()
    if pictures.dtype == torch.uint8:
        blocks = blocks.view(torch.uint8)
    return blocks.to(number).view(n, rows, columns, 16 * channels).permute(0, 3, 1, 2)


def _quads(pixels: torch.Tensor) -> torch.Tensor:
    """View each four neighbouring bytes as one int32; copy only if some are not aligned to four."""
    if any(number % 4 for number in (pixels.storage_offset(), *pixels.stride()[:-1])):
        pixels = pixels.contiguous()
    return pixels.view(torch.int32)


def _block_weight(weight: torch.Tensor) -> torch.Tensor:
    """Rearrange [filters, C, 8, 8] into [filters, 16 C, 2, 2], in the order of `_blocks`."""
    filters, channels = weight.shape[:2]
    blocks = weight.reshape(filters, channels, 2, 4, 2, 4).permute(0, 3, 1, 5, 2, 4)
    return blocks.reshape(filters, 16 * channels, 2, 2).contiguous(
        memory_format=torch.channels_last
    )


class NormedNatureCNN(LeanNatureCNN):
    """NatureCNN with layer normalisation before each ReLU, as in PQN.

    Args:
        layer_norm: `channels` normalises each position of a picture over its channels, as PQN's
            authors do in JAX. `picture` normalises over channels and positions together, with a
            weight for each number, as CleanRL does. The last layer is a vector, and the same in
            both. `none` is NatureCNN.
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        normalized_image: bool = False,
        *,
        precision: Precision = "float32",
        layer_norm: LayerNorm = "channels",
    ) -> None:
        super().__init__(observation_space, features_dim, normalized_image, precision=precision)
        self._over_channels = layer_norm == "channels"
        self.norms = nn.ModuleList()
        if layer_norm != "none":
            shapes = self._shapes(observation_space)
            if self._over_channels:
                shapes = [shape[:1] for shape in shapes]
            self.norms.extend(nn.LayerNorm(shape, eps=FLAX_EPSILON) for shape in shapes)

    def _shapes(self, observation_space: spaces.Box) -> list[tuple[int, ...]]:
        """Return the shape of each layer's output for one observation."""
        shapes: list[tuple[int, ...]] = []
        x = torch.zeros(1, *observation_space.shape)
        with torch.no_grad():
            for layer in self.cnn:
                x = layer(x)
                if isinstance(layer, nn.Conv2d):
                    shapes.append(tuple(x.shape[1:]))
        return [*shapes, (self.features_dim,)]

    def _activated(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        if not self.norms:
            return x.relu_()
        norm = self.norms[layer]
        assert isinstance(norm, nn.LayerNorm)
        weight = norm.weight.to(x.dtype)
        bias = norm.bias.to(x.dtype)
        shape = list(norm.normalized_shape)
        if not self._over_channels or x.ndim == 2:
            return functional.layer_norm(x, shape, weight, bias, norm.eps).relu_()
        # x is channels_last in memory, so neither permute moves anything, as long as the ReLU comes
        # before the second one
        x = functional.layer_norm(x.permute(0, 2, 3, 1), shape, weight, bias, norm.eps)
        return x.relu_().permute(0, 3, 1, 2)
