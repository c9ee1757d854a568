"""The form of one part of an observation: its shape, its values, and how it is stored.

A part is an array of one fixed shape. It is a `vector` of float32 numbers, some `categories` (each
an index below `n_values`, which a network embeds), or a `grid` of such indices, a small picture.
Each is stored in as few bytes as it has information: a flag takes a bit, an index the 1, 2, 4, 8 or
16 bits that hold the largest one, and only a number takes the 32 of a float.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Bits = Literal[1, 2, 4, 8, 16, 32]

_WIDTHS: tuple[Bits, ...] = (1, 2, 4, 8, 16)
_MOST_BYTE_VALUES = 256


def bits_of(n_values: int) -> Bits:
    """Return the bits in which an index below `n_values` is stored, at most 65,536."""
    return next(bits for bits in _WIDTHS if n_values <= 1 << bits)


@dataclass(frozen=True)
class Stretch:
    """Neighbouring elements of a flattened part that take the same number of bits each.

    Attributes:
        size: number of elements.
        bits: bits of each; 32 for a float32 as it is, otherwise for a whole number from 0 on.
    """

    size: int
    bits: Bits

    @property
    def nbytes(self) -> int:
        """Size of the packed stretch, which begins with a byte of its own."""
        return math.ceil(self.size * self.bits / 8)

    def pack(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack [n, size] into uint8 [n, nbytes].

        Raises:
            ValueError: a value is not a whole number below 2 ** bits.
        """
        if self.bits == 32:
            return np.ascontiguousarray(values, "<f4").view(np.uint8)
        most = (1 << self.bits) - 1
        right = (values >= 0) & (values <= most) & (values == np.floor(values))
        if not right.all():
            raise ValueError(f"a value is {values[~right][0]}, not a whole number from 0 to {most}")
        wide = np.ascontiguousarray(values, "<u2" if self.bits == 16 else np.uint8)
        if self.bits >= 8:
            return wide.view(np.uint8)
        if self.bits == 1:
            return np.packbits(wide, axis=1)
        each = 8 // self.bits
        codes = np.zeros((len(wide), self.nbytes * each), np.uint8)
        codes[:, : self.size] = wide
        packed = np.zeros((len(wide), self.nbytes), np.uint8)
        for place in range(each):
            packed |= codes[:, place::each] << np.uint8(8 - self.bits * (place + 1))
        return packed

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[Any]:
        """Unpack uint8 [n, nbytes] into [n, size] of uint8, uint16 or float32."""
        if self.bits >= 8:
            dtype = np.dtype({8: "|u1", 16: "<u2", 32: "<f4"}[self.bits])
            return np.ascontiguousarray(packed).view(dtype)
        if self.bits == 1:
            return np.unpackbits(packed, axis=1, count=self.size)
        shifts = np.arange(8 - self.bits, -1, -self.bits, dtype=np.uint8)
        codes: NDArray[np.uint8] = (packed[:, :, None] >> shifts) & np.uint8((1 << self.bits) - 1)
        return codes.reshape(len(packed), self.nbytes * len(shifts))[:, : self.size]


@dataclass(frozen=True)
class PartFormat:
    """The form of a part, known without an emulator.

    Attributes:
        kind: what its values are, which decides how a network takes them in.
        shape: shape of the part at one timestep: [n], or [1, H, W] of a grid.
        n_values: of categories and grids: values are whole numbers below this; 0 for a vector.
        stretches: how the flattened part is stored.
        is_stacked: whether an observation has the part at the latest timesteps, concatenated along
            the first axis, the newest last, as for screens.
    """

    kind: Literal["vector", "categories", "grid"]
    shape: tuple[int, ...]
    n_values: int
    stretches: tuple[Stretch, ...]
    is_stacked: bool = False

    @classmethod
    def of_indices(
        cls,
        kind: Literal["categories", "grid"],
        shape: tuple[int, ...],
        n_values: int,
        *,
        is_stacked: bool = False,
    ) -> "PartFormat":
        """Return the form of categories or of a grid, whose values are below `n_values`."""
        stretches = (Stretch(math.prod(shape), bits_of(n_values)),)
        return cls(kind, shape, n_values, stretches, is_stacked)

    @property
    def dtype(self) -> np.dtype[Any]:
        if self.kind == "vector":
            return np.dtype(np.float32)
        return np.dtype(np.uint8 if self.n_values <= _MOST_BYTE_VALUES else np.int32)

    def stacked_shape(self, stack: int) -> tuple[int, ...]:
        """Return the shape in an observation whose screens are stacks of `stack` frames."""
        return (self.shape[0] * (stack if self.is_stacked else 1), *self.shape[1:])

    @cached_property
    def nbytes(self) -> int:
        """Size of the packed part at one timestep."""
        return sum(stretch.nbytes for stretch in self.stretches)

    def pack(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack [..., *shape] into a new uint8 [..., nbytes].

        Raises:
            ValueError: a value cannot be stored in its bits.
        """
        batch = values.shape[: values.ndim - len(self.shape)]
        flat = values.reshape(math.prod(batch), math.prod(self.shape))
        packed = np.empty((len(flat), self.nbytes), np.uint8)
        for stretch, elements, stored in self.places():
            packed[:, stored] = stretch.pack(flat[:, elements])
        return packed.reshape(*batch, self.nbytes)

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[Any]:
        """Unpack uint8 [..., nbytes] into a new [..., *shape] of `dtype`."""
        batch = packed.shape[:-1]
        rows = packed.reshape(math.prod(batch), self.nbytes)
        values = np.empty((len(rows), math.prod(self.shape)), self.dtype)
        for stretch, elements, stored in self.places():
            values[:, elements] = stretch.unpack(rows[:, stored])
        return values.reshape(*batch, *self.shape)

    def places(self) -> Iterator[tuple[Stretch, slice, slice]]:
        """Yield each stretch with its elements of the flattened part and its packed bytes."""
        element = byte = 0
        for stretch in self.stretches:
            elements = slice(element, element + stretch.size)
            stored = slice(byte, byte + stretch.nbytes)
            yield stretch, elements, stored
            element = elements.stop
            byte = stored.stop
