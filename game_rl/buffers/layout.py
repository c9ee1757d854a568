"""Shapes, dtypes and sizes of the arrays that store a rollout or a replay.

The buffers allocate from this table, and the preflight predicts memory from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from game_rl.envs.observation import ObservationFormat


@dataclass(frozen=True)
class ArrayLayout:
    """One array of a buffer."""

    name: str
    shape: tuple[int, ...]
    dtype: DTypeLike

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def rollout_buffer_layout(
    observation_format: ObservationFormat, *, n_steps: int, n_envs: int
) -> tuple[ArrayLayout, ...]:
    """The arrays of a rollout buffer for packed frames and a Discrete action.

    Each frame is stored once: the newest frame of every timestep, and the frames before it in the
    first stack.
    """
    scalars = ("rewards", "returns", "episode_starts", "values", "log_probs", "advantages")
    n_rows = observation_format.stack - 1 + n_steps
    return (
        ArrayLayout("frames", (n_rows, n_envs, observation_format.row_bytes), np.uint8),
        ArrayLayout("actions", (n_steps, n_envs, 1), np.int64),
        *(ArrayLayout(name, (n_steps, n_envs), np.float32) for name in scalars),
    )


def pond_layout(
    observation_format: ObservationFormat, *, capacity: int, n_envs: int, n_actions: int
) -> tuple[ArrayLayout, ...]:
    """The arrays of a Pond for packed frames and a Discrete action.

    A slot is one frame of one env, with the action that was chosen for it and its outcome. Each env
    has slots for its part of the `capacity`, for the earlier frames that the oldest stack needs,
    and for the newest frame, which has no action yet.
    """
    shape = (capacity // n_envs + observation_format.stack, n_envs)
    return (
        ArrayLayout("frames", (*shape, observation_format.row_bytes), np.uint8),
        ArrayLayout("actions", shape, np.min_scalar_type(n_actions - 1)),
        ArrayLayout("rewards", shape, np.float32),
        ArrayLayout("endings", shape, np.uint8),
        ArrayLayout("ages", shape, np.uint8),
    )


REPLAY_LAYOUTS: Mapping[str, Callable[..., tuple[ArrayLayout, ...]]] = {"pond": pond_layout}
"""The arrays of every replay store, by its name in the config."""


def total_bytes(layout: tuple[ArrayLayout, ...]) -> int:
    return sum(array.nbytes for array in layout)
