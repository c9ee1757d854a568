"""Lossless packing of frames into 2, 4 or 8 bits a pixel.

A pixel of a four-shade screen is 85 q with q from 0 to 3, so it takes 2 bits. A half-size pixel is
(85 Q + r) // 4, where Q is the sum of four q (0 to 12), so it takes 4 bits; r is 3 for grey and 2
for RGB (see `observation`). With four shades, the red, green and blue planes are equal, and one of
them is stored. All other pixels take 8 bits.

The pixels that share a byte are far apart, not neighbours. With 4 bits, the first half of the
picture is in the high bits and the second half in the low bits, so unpacking moves whole stretches
instead of single pixels.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_PART_BYTES = 128 << 10  # pixels that are packed at once; as many as stay in the cache
_STEPS = {2: 85, 4: 21}  # bits -> difference of pixels with neighbouring codes, rounded down


@dataclass(frozen=True)
class FramePacking:
    """The packing of frames of one format.

    Attributes:
        shape: (channels, height, width) of a frame.
        bits: bits of a pixel: 2 for four shades, 4 for their half-size means, 8 for any bytes.
        rounding: the r of the module's docstring; only used with 4 bits.
        is_one_plane: whether all channels of a frame are equal.
    """

    shape: tuple[int, int, int]
    bits: Literal[2, 4, 8] = 8
    rounding: Literal[2, 3] = 3
    is_one_plane: bool = False

    @cached_property
    def nbytes(self) -> int:
        """Size of a packed frame."""
        return math.ceil(self._n_pixels * self.bits / 8)

    def pack(self, frames: Bytes) -> Bytes:
        """Pack uint8 [..., C, H, W] into a new uint8 [..., nbytes].

        Raises:
            ValueError: a frame has a pixel that this packing cannot hold.
        """
        if frames.ndim == 3:
            return self._packed(frames)
        flat = frames.reshape(-1, *self.shape)
        n = max(1, _PART_BYTES // self._n_pixels)
        packed = np.empty((len(flat), self.nbytes), np.uint8)
        for start in range(0, len(flat), n):
            packed[start : start + n] = self._packed(flat[start : start + n])
        return packed.reshape(*frames.shape[:-3], self.nbytes)

    def _packed(self, frames: Bytes) -> Bytes:
        """Pack all frames at once."""
        planes = frames[..., :1, :, :] if self.is_one_plane else frames
        pixels = planes.reshape(*frames.shape[:-3], self._n_pixels)
        if self.bits == 8:
            packed = pixels.copy()
            is_lossless = True
        else:
            codes = pixels // _STEPS[self.bits]
            packed = self._joined(codes)
            is_lossless = bool((self._decoded(codes) == pixels).all())
        if self.is_one_plane and self.shape[0] > 1:
            is_lossless &= bool((frames[..., 1:, :, :] == planes).all())
        if not is_lossless:
            raise ValueError(self._what_is_lost(packed, frames))
        return packed

    def unpack(self, packed: Bytes) -> Bytes:
        """Unpack uint8 [..., nbytes] into a new uint8 [..., C, H, W]."""
        frames = np.empty((*packed.shape[:-1], *self.shape), np.uint8)
        self.unpack_into(packed, frames.reshape(*packed.shape[:-1], math.prod(self.shape)))
        return frames

    def unpack_into(self, packed: Any, pixels: Any) -> None:  # noqa: ANN401 - no torch here
        """Unpack [..., nbytes] from `pack` into [..., C * H * W].

        Both are uint8 arrays of NumPy, or both uint8 tensors of torch. NumPy is faster on the CPU.
        """
        first = pixels[..., : self._n_pixels]
        if isinstance(packed, np.ndarray) and self.bits < 8:
            self._unpack_array_into(packed, first)
        else:
            mask = (1 << self.bits) - 1
            for shift, part in self._parts:
                codes = packed[..., : part.stop - part.start]
                first[..., part] = (codes >> shift) & mask if self.bits < 8 else codes
            self._levels(first)
        for channel in range(1, math.prod(self.shape) // self._n_pixels):
            pixels[..., channel * self._n_pixels : (channel + 1) * self._n_pixels] = first

    @cached_property
    def _n_pixels(self) -> int:
        """Number of pixels of a frame that are stored."""
        channels, height, width = self.shape
        return (1 if self.is_one_plane else channels) * height * width

    @cached_property
    def _parts(self) -> list[tuple[int, slice]]:
        """For each stretch of the picture, its shift within the bytes, and its slice of pixels."""
        n = self._n_pixels
        nbytes = self.nbytes
        stretches = range(8 // self.bits)
        return [
            (8 - self.bits * (i + 1), slice(min(i * nbytes, n), min((i + 1) * nbytes, n)))
            for i in stretches
        ]

    def _joined(self, codes: Bytes) -> Bytes:
        """Join codes [..., n_pixels] below 2 ** bits into bytes [..., nbytes].

        This uses products and sums because NumPy shifts one byte at a time but multiplies many at
        once.
        """
        (shift, part), *others = self._parts
        packed = codes[..., part] * np.uint8(1 << shift)
        for shift, part in others:
            more = codes[..., part]
            packed[..., : more.shape[-1]] += more * np.uint8(1 << shift) if shift else more
        return packed

    def _decoded(self, codes: Bytes) -> Bytes:
        """Do the same as `_levels` with a division, which is faster than a shift in NumPy."""
        if self.bits == 2:
            codes *= 85
            return codes
        quarters = codes + np.uint8(self.rounding)
        quarters //= 4
        codes *= 21
        codes += quarters
        return codes

    def _levels(self, codes: Any) -> None:  # noqa: ANN401
        """Turn codes into pixels in place; in bytes, (85 Q + r) // 4 is 21 Q + (Q + r) // 4."""
        if self.bits == 2:
            codes *= 85
        elif self.bits == 4:
            quarters = codes + self.rounding
            quarters >>= 2
            codes *= 21
            codes += quarters

    def _unpack_array_into(self, packed: Bytes, pixels: Bytes) -> None:
        """Unpack NumPy arrays in half the time: in place, and two bytes at once if possible.

        The codes of frames are so small that no byte overflows into its neighbour.
        """
        ones = 1
        if self._n_pixels % 16 == 0 and packed.strides[-1] == pixels.strides[-1] == 1:
            packed = packed.view(np.uint16)
            pixels = pixels.view(np.uint16)
            ones = 0x0101
        n = packed.shape[-1]
        mask = ((1 << self.bits) - 1) * ones
        for i in range(8 // self.bits):
            part = pixels[..., i * n : (i + 1) * n]
            codes = packed[..., : part.shape[-1]]
            if shift := 8 - self.bits * (i + 1):
                codes = np.right_shift(codes, shift, out=part)
            np.bitwise_and(codes, mask, out=part)
        if self.bits == 2:
            pixels *= 85
        else:
            quarters = pixels + self.rounding * ones
            quarters >>= 2
            quarters &= 3 * ones
            pixels *= 21
            pixels += quarters

    def _what_is_lost(self, packed: Bytes, frames: Bytes) -> str:
        wrong = frames[self.unpack(packed) != frames][0]
        what = f"{self.bits} bits a pixel" + (", the same in each channel" * self.is_one_plane)
        return f"a frame has a pixel of {wrong}, which {what} cannot hold"
