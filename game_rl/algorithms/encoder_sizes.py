"""Sizes of the networks that make features of the parts of an observation.

It imports no torch, because the preflight uses it as well as the training.
"""

from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Protocol

from game_rl.config.algorithms import LayerNorm
from game_rl.system.placement import Bf16Way

FLOAT_BYTES = 4
BF16_BYTES = 2
_INDEX_BYTES = 8  # torch's int64
_FLOAT = FLOAT_BYTES
_BF16 = BF16_BYTES

Blocks = dict[str, list[int]]
"""Sizes of the memory blocks alive together, in bytes, by moment of a gradient step.

Observations, weights, their gradients and the optimiser's moments are not included. The moment
"forward" is the end of the forward pass, with everything that the backward pass needs.
"""

IMPALA_CHANNELS = (16, 32, 32)
_SMALL_CHANNELS = (32, 64)
_WIDEST_EMBEDDING = 16


def embedding_width(n_values: int) -> int:
    """Return the size of the embedding of one of `n_values` values: their root, at most 16.

    A convolution or linear layer reads the embedding, so a few numbers are enough to tell values
    apart, and rare ones are learned from few timesteps.
    """
    return min(_WIDEST_EMBEDDING, ceil(sqrt(n_values)))


class EncoderSize(Protocol):
    """Size of a network that makes features of one part."""

    @property
    def features(self) -> int:
        """Numbers that it makes of one observation."""

    @property
    def parameters(self) -> int: ...

    @property
    def largest_parameter(self) -> int:
        """Numbers in its largest weight."""

    def kept_weights_bytes(self, *, bf16: bool) -> int:
        """Bytes of the weight copies that it caches in evaluation mode."""

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks: ...


def _half(size: int) -> int:
    return -(-size // 2)


def _norm_parameters(layer_norm: LayerNorm, *shapes: tuple[int, ...]) -> int:
    """Numbers in the normalisation of inputs of these shapes: a weight and a bias for each."""
    if layer_norm == "none":
        return 0
    return 2 * sum(shape[0] if layer_norm == "channels" else prod(shape) for shape in shapes)


def _norm_block(
    layer_norm: LayerNorm, shape: tuple[int, ...], batch_size: int, *, number: int
) -> list[int]:
    """Return the blocks that a normalisation keeps: its input, and its statistics.

    The statistics are a mean and a deviation for each normalised group.
    """
    if layer_norm == "none":
        return []
    group = shape[0] if layer_norm == "channels" else prod(shape)
    size = prod(shape) * batch_size
    return [number * size, 2 * number * size // group]


@dataclass(frozen=True, kw_only=True)
class NatureSize:
    """Size of a NatureCNN: three convolutions and a linear layer.

    Attributes:
        channels: of the stacked screens.
    """

    channels: int
    height: int
    width: int
    features: int = 512
    layer_norm: LayerNorm = "none"

    @property
    def activations(self) -> tuple[int, int, int]:
        """Numbers in the output of each convolution for one observation."""
        first, second, third = self._shapes
        return prod(first), prod(second), prod(third)

    @property
    def _shapes(self) -> tuple[tuple[int, int, int], ...]:
        sides = [self.height, self.width]
        shapes = []
        for filters, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            sides = [(side - kernel) // stride + 1 for side in sides]
            shapes.append((filters, sides[0], sides[1]))
        return tuple(shapes)

    @property
    def parameters(self) -> int:
        convolutions = sum(self._convolutions) + 32 + 64 + 64
        norms = _norm_parameters(self.layer_norm, *self._shapes, (self.features,))
        return convolutions + self._linear + self.features + norms

    @property
    def _convolutions(self) -> tuple[int, int, int]:
        """Numbers in the weight of each convolution."""
        return 64 * self.channels * 32, 16 * 32 * 64, 9 * 64 * 64

    @property
    def _linear(self) -> int:
        """Numbers in the linear layer's weight."""
        return self.activations[2] * self.features

    @property
    def largest_parameter(self) -> int:
        return max(self._linear, *self._convolutions)

    def kept_weights_bytes(self, *, bf16: bool) -> int:
        """Bytes of the weight copies that LeanNatureCNN caches in evaluation mode."""
        return _BF16 * self.parameters if bf16 else _FLOAT * self._linear

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:
        """Return the blocks that torch's profiler shows for LeanNatureCNN.

        The copies of weights and gradients that bfloat16 needs are included.

        - The bytes are moved into the order of blocks, then converted to numbers.
        - A ReLU works in place. In the backward pass it holds its output and both gradients.
        - Flattening copies, because the input is channels_last.
        - One normalisation over the whole picture copies, because it is computed channels first.
        - The features are small in comparison. With normalisation there are two copies of them,
          and in bfloat16 a float32 copy as well.
        - Where bfloat16 is converted, the linear layer's gradient is summed in float32. Where it is
          unfolded, a number of an input stands once for each place of the kernel that covers it.
        """
        number = _BF16 if bf16 else _FLOAT
        x = number * self._whole_blocks * batch_size
        a1, a2, a3 = (number * size * batch_size for size in self.activations)
        always = [_BF16 * self.parameters] if bf16 else []
        n1, n2, n3, n4 = (
            _norm_block(self.layer_norm, shape, batch_size, number=number)
            for shape in (*self._shapes, (self.features,))
        )
        first, copies = ([a1], [a2, a2]) if self.layer_norm == "picture" else ([], [])
        numbers = _BF16 + (_FLOAT if way == "converted" else 0)
        gradient = [numbers * self._linear] if bf16 else []
        as_floats = [2 * size for size in n4[:1]] if bf16 else []
        bytes_in_blocks = [self._whole_blocks * batch_size] * (2 if self.width % 4 else 1)
        below = [*always, x, a1, *n1, a2, *n2]
        u1, u2, u3 = self._unfolded(batch_size) if bf16 and way == "unfolded" else ([], [], [])
        return {
            "to blocks": [*always, *bytes_in_blocks, x],
            "unfolded 1": [*always, x, a1, *first, *u1],
            "backward unfolded 2": [*always, x, a1, *n1, a2, a1, *u2],
            "backward unfolded 3": [*below, a3, a2, *u3],
            "forward": [*below, a3, *n3, a3, *n4, *n4[:1], *as_floats],
            "backward linear": [*below, a3, *n3, a3, a3, *n4[:1], *gradient],
            "backward 2": [*below, a2, a2],
            "backward 1": [*always, x, a1, *n1, a1, a1, *copies],
        }

    def _unfolded(self, batch_size: int) -> tuple[list[int], list[int], list[int]]:
        """Return the block of each convolution's unfolded input, in bfloat16."""
        a1, a2, a3 = (_BF16 * size * batch_size for size in self.activations)
        return [64 * self.channels * a1 // 32], [16 * 32 * a2 // 64], [9 * 64 * a3 // 64]

    @property
    def _whole_blocks(self) -> int:
        """Numbers in the whole 4 x 4 blocks of an observation; the network ignores the rest."""
        return self.channels * (self.height // 4 * 4) * (self.width // 4 * 4)


@dataclass(frozen=True, kw_only=True)
class SmallSize:
    """Size of `small_layers`: two convolutions with stride 2 and a linear layer."""

    channels: int
    height: int
    width: int
    features: int = 512
    layer_norm: LayerNorm = "none"

    @property
    def shapes(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Shape of the output of each convolution for one observation."""
        first, second = _SMALL_CHANNELS
        height = _half(self.height)
        width = _half(self.width)
        return (first, height, width), (second, _half(height), _half(width))

    @property
    def parameters(self) -> int:
        first, second = _SMALL_CHANNELS
        convolutions = 9 * self.channels * first + first + 9 * first * second + second
        norms = _norm_parameters(self.layer_norm, *self.shapes, (self.features,))
        linear = (prod(self.shapes[1]) + 1) * self.features
        return convolutions + linear + norms

    @property
    def largest_parameter(self) -> int:
        return max(prod(self.shapes[1]) * self.features, 9 * prod(_SMALL_CHANNELS))

    def kept_weights_bytes(self, *, bf16: bool) -> int:  # noqa: ARG002
        return 0

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:  # noqa: ARG002
        number = _BF16 if bf16 else _FLOAT
        x = number * self.channels * self.height * self.width * batch_size
        a1, a2 = (number * prod(shape) * batch_size for shape in self.shapes)
        shapes = (*self.shapes, (self.features,))
        n1, n2, n3 = (
            _norm_block(self.layer_norm, shape, batch_size, number=number) for shape in shapes
        )
        out = [_FLOAT * self.features * batch_size]
        below = [x, a1, *n1, a2, *n2]
        copies = [a1] if self.layer_norm == "picture" else []  # it is computed channels first
        return {
            "to numbers": [x, x],
            "forward": [*below, a2, *n3, *out],
            "backward linear": [*below, a2, a2, *out],
            "backward 2": [x, a1, *n1, a2, a2, a2],
            "backward 1": [x, a1, *n1, *copies, a1, a1],
        }


@dataclass(frozen=True, kw_only=True)
class GridSize:
    """Size of a GridCNN: an embedding of each cell before `small_layers`.

    Attributes:
        stack: grids in an observation.
    """

    stack: int
    height: int
    width: int
    n_values: int
    features: int = 512
    layer_norm: LayerNorm = "none"

    @property
    def _layers(self) -> SmallSize:
        return SmallSize(
            channels=self.stack * embedding_width(self.n_values),
            height=self.height,
            width=self.width,
            features=self.features,
            layer_norm=self.layer_norm,
        )

    @property
    def parameters(self) -> int:
        return self.n_values * embedding_width(self.n_values) + self._layers.parameters

    @property
    def largest_parameter(self) -> int:
        embedding = self.n_values * embedding_width(self.n_values)
        return max(embedding, self._layers.largest_parameter)

    def kept_weights_bytes(self, *, bf16: bool) -> int:  # noqa: ARG002
        return 0

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:  # noqa: ARG002
        """As `SmallSize.step_blocks`, in float32, with the gradient of the embedded cells.

        The embedding keeps the cells as int64. Stacked grids are moved next to each other.
        """
        n_cells = self.stack * self.height * self.width * batch_size
        cells = _INDEX_BYTES * n_cells
        x = _FLOAT * n_cells * embedding_width(self.n_values)
        moved = [x] if self.stack > 1 else []
        blocks = self._layers.step_blocks(batch_size, bf16=False)
        a1 = blocks["backward 1"][-1]
        blocks |= {
            "to numbers": [x, *moved],
            "backward cells": [x, a1, x],
        }
        return {moment: [cells, *own] for moment, own in blocks.items()}


@dataclass(frozen=True, kw_only=True)
class CategoriesSize:
    """Size of a CategoriesEmbedding of `n` categories."""

    n: int
    n_values: int

    @property
    def features(self) -> int:
        return self.n * embedding_width(self.n_values)

    @property
    def parameters(self) -> int:
        return self.n_values * embedding_width(self.n_values)

    @property
    def largest_parameter(self) -> int:
        return self.parameters

    def kept_weights_bytes(self, *, bf16: bool) -> int:  # noqa: ARG002
        return 0

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:  # noqa: ARG002
        indices = _INDEX_BYTES * self.n * batch_size
        return {"forward": [indices, _FLOAT * self.features * batch_size]}


@dataclass(frozen=True, kw_only=True)
class VectorSize:
    """Size of a vector of `features` numbers, which goes through no layer of its own."""

    features: int

    @property
    def parameters(self) -> int:
        return 0

    @property
    def largest_parameter(self) -> int:
        return 0

    def kept_weights_bytes(self, *, bf16: bool) -> int:  # noqa: ARG002
        return 0

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:  # noqa: ARG002
        return {"forward": []}


@dataclass(frozen=True, kw_only=True)
class ImpalaSize:
    """Size of an ImpalaCNN.

    Attributes:
        channels: of the stacked screens.
    """

    channels: int
    height: int
    width: int
    features: int = 512
    layer_norm: LayerNorm = "none"

    @property
    def _sections(self) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Shapes of each section's first convolution's output, and of its pooled output."""
        height = self.height
        width = self.width
        found = []
        for filters in IMPALA_CHANNELS:
            smaller = _half(height), _half(width)
            found.append(((filters, height, width), (filters, *smaller)))
            height, width = smaller
        return found

    @property
    def _last(self) -> tuple[int, int, int]:
        return self._sections[-1][1]

    @property
    def parameters(self) -> int:
        channels = self.channels
        total = 0
        for whole, pooled in self._sections:
            filters = whole[0]
            total += 9 * channels * filters + filters + 4 * (9 * filters * filters + filters)
            total += _norm_parameters(self.layer_norm, *4 * [pooled])
            channels = filters
        norms = _norm_parameters(self.layer_norm, self._last, (self.features,))
        return total + norms + (prod(self._last) + 1) * self.features

    @property
    def largest_parameter(self) -> int:
        return max(prod(self._last) * self.features, 9 * IMPALA_CHANNELS[-1] ** 2)

    def kept_weights_bytes(self, *, bf16: bool) -> int:  # noqa: ARG002
        return 0

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:
        """Return the blocks of the dearest moments.

        A residual block keeps the results of its two ReLUs, and with normalisation also what is
        normalised. Max-pooling keeps its input and the places of the largest numbers.
        """
        number = _BF16 if bf16 else _FLOAT
        x = number * self.channels * self.height * self.width * batch_size
        kept: list[list[int]] = []
        for whole, pooled in self._sections:
            c, p = (number * prod(shape) * batch_size for shape in (whole, pooled))
            places = _INDEX_BYTES * prod(pooled) * batch_size
            norm = _norm_block(self.layer_norm, pooled, batch_size, number=number)
            kept.append([c, places, *4 * [p, *norm]])
        pooled_bytes = [number * prod(pooled) * batch_size for _, pooled in self._sections]
        p1, *_, p3 = pooled_bytes
        out = [_FLOAT * self.features * batch_size]
        c1 = kept[0][0]
        unfolded = [9 * IMPALA_CHANNELS[0] * p1] if bf16 and way == "unfolded" else []
        everything = [x, *kept[0], *kept[1], *kept[2], *pooled_bytes]
        return {
            "to numbers": [x, x],
            "forward": [*everything, p3, *out],
            "backward linear": [*everything, p3, p3, *out],
            "backward residual 1": [x, *kept[0], p1, p1, p1, *unfolded],
            "backward pool 1": [x, c1, kept[0][1], p1, c1],
        }
