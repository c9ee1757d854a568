"""What the training process and its workers exchange at every step: one row for each env."""

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

_ALIGNMENT = 64  # bytes of a cache line


class SharedArrays:
    """Arrays of all envs in one block of memory that every process maps.

    Attributes:
        observations: [n_envs, *observation shape], as the observation space.
        actions: [n_envs, *action shape], as the action space.
        rewards: float32 [n_envs].
        terminated, truncated: bool [n_envs].
    """

    def __init__(
        self,
        file_descriptor: int,
        n_envs: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
    ) -> None:
        fields = _fields(observation_space, action_space)
        n_bytes = sum(_field_bytes(n_envs, shape, dtype) for shape, dtype in fields)
        if os.fstat(file_descriptor).st_size < n_bytes:
            os.ftruncate(file_descriptor, n_bytes)
        memory = mmap.mmap(file_descriptor, n_bytes)
        arrays: list[NDArray[Any]] = []
        offset = 0
        for shape, dtype in fields:
            array: NDArray[Any] = np.ndarray((n_envs, *shape), dtype, memory, offset)
            arrays.append(array)
            offset += _field_bytes(n_envs, shape, dtype)
        self.observations, self.actions, self.rewards, self.terminated, self.truncated = arrays


def nameless_file() -> int:
    """A new file descriptor of memory that has no path, so that nothing is left after `kill -9`.

    memfd, unlike /dev/shm, is not held to the 64 MB that containers give by default.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("game_rl")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _fields(*env_spaces: spaces.Space[Any]) -> list[tuple[tuple[int, ...], DTypeLike]]:
    fields: list[tuple[tuple[int, ...], DTypeLike]] = []
    for space in env_spaces:
        if space.shape is None or space.dtype is None:
            raise TypeError(f"{space} is not one array of a fixed shape, so it cannot be shared")
        fields.append((space.shape, space.dtype))
    return [*fields, ((), np.float32), ((), np.bool_), ((), np.bool_)]


def _field_bytes(n_envs: int, shape: tuple[int, ...], dtype: DTypeLike) -> int:
    n_bytes = n_envs * math.prod(shape) * np.dtype(dtype).itemsize
    return max(1, math.ceil(n_bytes / _ALIGNMENT)) * _ALIGNMENT
