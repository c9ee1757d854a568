"""Shapes, dtypes and bytes of what a rollout or a replay is stored in.

What allocates storage and what predicts it read the same table.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class ArrayLayout:
    """One array of a storage."""

    name: str
    shape: tuple[int, ...]
    dtype: DTypeLike

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def rollout_buffer_layout(
    *, n_steps: int, n_envs: int, frame_bytes: int, frame_stack: int
) -> tuple[ArrayLayout, ...]:
    """The arrays of a rollout buffer for packed frames and a Discrete action.

    Each frame is there once: that of every timestep, and those that the first stack had before it.
    """
    scalars = ("rewards", "returns", "episode_starts", "values", "log_probs", "advantages")
    return (
        ArrayLayout("frames", (frame_stack - 1 + n_steps, n_envs, frame_bytes), np.uint8),
        ArrayLayout("actions", (n_steps, n_envs, 1), np.int64),
        *(ArrayLayout(name, (n_steps, n_envs), np.float32) for name in scalars),
    )


def pond_layout(
    *, capacity: int, n_envs: int, frame_bytes: int, frame_stack: int, n_actions: int
) -> tuple[ArrayLayout, ...]:
    """The arrays of a Pond for packed frames and a Discrete action.

    A slot is one frame of one env and what was done on seeing it. Each env has slots for its part
    of the `capacity`, for the frames that the oldest stack reaches back to, and for the newest
    frame, on which nothing has been done yet.
    """
    shape = (capacity // n_envs + frame_stack, n_envs)
    return (
        ArrayLayout("frames", (*shape, frame_bytes), np.uint8),
        ArrayLayout("actions", shape, np.min_scalar_type(n_actions - 1)),
        ArrayLayout("rewards", shape, np.float32),
        ArrayLayout("endings", shape, np.uint8),
        ArrayLayout("ages", shape, np.uint8),
    )


def total_bytes(layout: tuple[ArrayLayout, ...]) -> int:
    return sum(array.nbytes for array in layout)
