"""Shapes, dtypes and bytes of what a rollout is stored in.

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
    *, n_steps: int, n_envs: int, observation_shape: tuple[int, ...]
) -> tuple[ArrayLayout, ...]:
    """The arrays of SB3's RolloutBuffer for uint8 observations and a Discrete action.

    The whole stack of frames is stored for each timestep. Since SB3 2.7.1 images stay uint8.
    """
    scalars = ("rewards", "returns", "episode_starts", "values", "log_probs", "advantages")
    return (
        ArrayLayout("observations", (n_steps, n_envs, *observation_shape), np.uint8),
        ArrayLayout("actions", (n_steps, n_envs, 1), np.int64),
        *(ArrayLayout(name, (n_steps, n_envs), np.float32) for name in scalars),
    )


def total_bytes(layout: tuple[ArrayLayout, ...]) -> int:
    return sum(array.nbytes for array in layout)
