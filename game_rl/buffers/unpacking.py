"""Unpacking many single packed frames to pixels."""

import numpy as np
import torch
from numpy.typing import NDArray

from game_rl.envs.packing import FramePacking

_PART_BYTES = 160 << 10  # of packed frames, which fit the processor's cache once unpacked


def unpack_rows(
    frames: torch.Tensor,
    rows: NDArray[np.int64],
    *,
    blank: NDArray[np.int64],
    packing: FramePacking,
    device: torch.device | str,
) -> torch.Tensor:
    """Return the pixels of these rows as a new tensor, uint8 [len(rows), C * H * W] on `device`.

    Args:
        frames: uint8 [n, packing.nbytes], in RAM or on a GPU.
        rows: indices of the frames, in the order of the result.
        blank: indices of the results that are all zeros instead.
        packing: how one frame is packed.
        device: device of the result; frames are moved to it packed.
    """
    channels, height, width = packing.shape
    shape = (len(rows), channels * height * width)
    pixels = torch.empty(shape, dtype=torch.uint8, device=device)
    if frames.device.type == "cpu" and pixels.device.type == "cpu":
        _unpack_in_parts(frames.numpy(), rows, packing, pixels.numpy())
        pixels.numpy()[blank] = 0
    else:
        packed = frames.index_select(0, torch.from_numpy(rows).to(frames.device)).to(device)
        packing.unpack_into(packed, pixels)
        pixels[torch.from_numpy(blank).to(device)] = 0
    return pixels


def _unpack_in_parts(
    frames: NDArray[np.uint8],
    rows: NDArray[np.int64],
    packing: FramePacking,
    pixels: NDArray[np.uint8],
) -> None:
    """Unpack as many frames at once as fit the cache."""
    n = max(1, _PART_BYTES // packing.nbytes)
    packed = np.empty((min(n, len(rows)), packing.nbytes), np.uint8)
    for start in range(0, len(rows), n):
        part = rows[start : start + n]
        # rows are in range; any other mode makes a copy first
        frames.take(part, axis=0, out=packed[: len(part)], mode="clip")
        packing.unpack_into(packed[: len(part)], pixels[start : start + n])
