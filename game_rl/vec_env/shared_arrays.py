"""Shared memory for the data of every step, with a row for each env."""

import itertools
import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

from game_rl.vec_env.messages import Attachment

_ALIGNMENT = 64  # bytes of a cache line

_Field = tuple[tuple[int, ...], DTypeLike]


class SharedArrays:
    """Arrays of all envs in one block of memory that the training and all workers map.

    Attributes:
        observations: [n_rows, n_envs, *observation shape], with the observation space's dtype.
        packed: uint8 [2, n_envs, packed_bytes], the newest frames and the ones before, packed.
        rows: int64 [2], the row of `observations` and the row of `packed` that workers write next.
        actions: [n_envs, *action shape], with the action space's dtype.
        rewards: float32 [n_envs].
        terminated, truncated: bool [n_envs].
    """

    def __init__(self, file_descriptor: int, attachment: Attachment) -> None:
        packing = attachment.packing
        fields = _fields(
            attachment.n_envs,
            attachment.n_rows,
            observation=_shape_and_dtype(attachment.spaces.observation),
            action=_shape_and_dtype(attachment.spaces.action),
            packed_bytes=0 if packing is None else packing.nbytes,
        )
        arrays = _map_arrays(file_descriptor, fields)
        self.observations, self.packed, self.actions, self.rewards, *flags = arrays
        self.terminated, self.truncated, self.rows = flags


def shared_bytes(
    *, n_envs: int, frame_stack: int, frame_shape: tuple[int, int, int], packed_bytes: int
) -> int:
    """Return the size of a vec env's SharedArrays, with stacked frames and a Discrete action."""
    fields = _fields(
        n_envs,
        frame_stack + 1,
        observation=(frame_shape, np.uint8),
        action=((), np.int64),
        packed_bytes=packed_bytes,
    )
    return sum(_padded_bytes(shape, dtype) for shape, dtype in fields)


def _fields(
    n_envs: int, n_rows: int, *, observation: _Field, action: _Field, packed_bytes: int
) -> list[_Field]:
    (observation_shape, observation_dtype), (action_shape, action_dtype) = observation, action
    return [
        ((n_rows, n_envs, *observation_shape), observation_dtype),
        ((2, n_envs, packed_bytes), np.uint8),
        ((n_envs, *action_shape), action_dtype),
        ((n_envs,), np.float32),
        ((n_envs,), np.bool_),
        ((n_envs,), np.bool_),
        ((2,), np.int64),
    ]


def nameless_file() -> int:
    """Return a file descriptor of memory without a path, so `kill -9` leaves nothing behind.

    Unlike /dev/shm, a memfd is not limited to the 64 MB that containers have by default.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("game_rl")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _map_arrays(file_descriptor: int, fields: list[_Field]) -> list[NDArray[Any]]:
    sizes = [_padded_bytes(shape, dtype) for shape, dtype in fields]
    if os.fstat(file_descriptor).st_size < sum(sizes):
        os.ftruncate(file_descriptor, sum(sizes))
    memory = mmap.mmap(file_descriptor, sum(sizes))
    offsets = itertools.accumulate(sizes, initial=0)
    return [
        np.ndarray(shape, dtype, memory, offset)
        for (shape, dtype), offset in zip(fields, offsets, strict=False)
    ]


def _shape_and_dtype(space: spaces.Space[Any]) -> _Field:
    if space.shape is None or space.dtype is None:
        raise TypeError(f"{space} is not one array of a fixed shape, so it cannot be shared")
    return space.shape, space.dtype


def _padded_bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    return max(1, math.ceil(n_bytes / _ALIGNMENT)) * _ALIGNMENT
