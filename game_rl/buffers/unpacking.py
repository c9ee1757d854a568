"""Unpacking many stored rows to observations."""

from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.utils import obs_as_tensor

from game_rl.envs.observation import SCREEN, Observation, ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat, Stretch

Tensors = torch.Tensor | dict[str, torch.Tensor]
"""A batch of observations as a network gets it: stacks of screens, or a tensor for each part."""

_PART_BYTES = 160 << 10  # of packed frames, which fit the processor's cache once unpacked
_DTYPES = {"<f4": torch.float32, "|u1": torch.uint8, "<i4": torch.int32}


def unpack_observations(
    rows: torch.Tensor,
    indices: NDArray[np.int64],
    blank: NDArray[np.bool_],
    *,
    observation_format: ObservationFormat,
    device: torch.device | str,
) -> Tensors:
    """Return a batch of observations as the network gets them, in new memory on `device`.

    Args:
        rows: uint8 [n, row_bytes], in RAM or on a GPU.
        indices: [batch, k], the rows of each observation, the oldest first. If k is larger than
            the format's stack, each part has as many more arrays, so that one result holds an
            observation and those that follow it.
        blank: [batch, k], where zeros take the place of a row.
        device: device of the result; rows are moved to it packed.
    """
    if not observation_format.is_dict:
        assert observation_format.screen is not None
        pixels = unpack_rows(
            rows,
            indices.ravel(),
            blank=np.flatnonzero(blank),
            packing=observation_format.screen,
            device=device,
        )
        channels, height, width = observation_format.frame_shape
        return pixels.view(len(indices), indices.shape[1] * channels, height, width)
    more = indices.shape[1] - observation_format.stack
    packings = {SCREEN: observation_format.screen, **dict(observation_format.parts)}
    found = {}  # part by part, in the order of the space
    for name, n_stacked in sorted(observation_format.stacks.items()):
        n = n_stacked + more
        packing = packings[name]
        assert packing is not None
        values = _unpack_part(
            rows[:, observation_format.columns[name]],
            indices[:, -n:].ravel(),
            blank=np.flatnonzero(blank[:, -n:]),
            packing=packing,
            device=device,
        )
        first, *others = observation_format.frame_shapes[name]
        found[name] = values.view(len(indices), n * first, *others)
    return found


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
    if _are_in_ram(frames, device):
        _unpack_in_parts(frames.numpy(), rows, packing, pixels.numpy())
        pixels.numpy()[blank] = 0
    else:
        packing.unpack_into(_moved(frames, rows, device), pixels)
        pixels[torch.from_numpy(blank).to(device)] = 0
    return pixels


def _are_in_ram(frames: torch.Tensor, device: torch.device | str) -> bool:
    """Whether NumPy can unpack them, which is faster there."""
    return frames.device.type == "cpu" and torch.device(device).type == "cpu"


def _moved(
    frames: torch.Tensor, rows: NDArray[np.int64], device: torch.device | str
) -> torch.Tensor:
    """Return these rows, still packed, on `device`."""
    return frames.index_select(0, torch.from_numpy(rows).to(frames.device)).to(device)


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
        if frames.flags.c_contiguous:
            # rows are in range; any other mode makes a copy first
            frames.take(part, axis=0, out=packed[: len(part)], mode="clip")
        else:  # of which `take` would copy all rows
            packed[: len(part)] = frames[part]
        packing.unpack_into(packed[: len(part)], pixels[start : start + n])


def _unpack_part(
    frames: torch.Tensor,
    rows: NDArray[np.int64],
    *,
    blank: NDArray[np.int64],
    packing: FramePacking | PartFormat,
    device: torch.device | str,
) -> torch.Tensor:
    """As `unpack_rows`, for any part: [len(rows), values of the part]."""
    if isinstance(packing, FramePacking):
        return unpack_rows(frames, rows, blank=blank, packing=packing, device=device)
    if _are_in_ram(frames, device):
        flat = packing.unpack(frames.numpy()[rows]).reshape(len(rows), prod(packing.shape))
        values = torch.from_numpy(flat)
        values.numpy()[blank] = 0
    else:
        values = unpack_part_tensor(_moved(frames, rows, device), packing)
        values[torch.from_numpy(blank).to(device)] = 0
    return values


def unpack_part_tensor(packed: torch.Tensor, part: PartFormat) -> torch.Tensor:
    """As `PartFormat.unpack` does it, on any device: uint8 [n, nbytes] to [n, values]."""
    shape = (len(packed), prod(part.shape))
    values = torch.empty(shape, dtype=_DTYPES[part.dtype.str], device=packed.device)
    for stretch, elements, stored in part.places():
        values[:, elements] = _numbers(packed[:, stored], stretch)
    return values


def _numbers(packed: torch.Tensor, stretch: Stretch) -> torch.Tensor:
    """Unpack uint8 [n, nbytes] of a stretch into [n, size] of uint8, int32 or float32."""
    bits = stretch.bits
    if bits == 32:  # a view needs memory that begins at a multiple of four bytes
        return packed.clone(memory_format=torch.contiguous_format).view(torch.float32)
    if bits == 16:
        wide = packed.to(torch.int32)
        return wide[:, 0::2] | wide[:, 1::2] << 8
    if bits == 8:
        return packed
    shifts = torch.arange(8 - bits, -1, -bits, dtype=torch.uint8, device=packed.device)
    codes = (packed[:, :, None] >> shifts) & ((1 << bits) - 1)
    return codes.flatten(1)[:, : stretch.size]


def observation_tensors(batch: Observation, device: torch.device) -> Tensors:
    """Return a batch on the device; on the CPU its memory is the arrays'."""
    return obs_as_tensor(batch, device)  # type: ignore[arg-type]  # any mapping will do
