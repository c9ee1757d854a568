"""What is stored of a vec step, and the shapes, dtypes and sizes of the arrays that store it.

The buffers allocate from this table, and the preflight predicts memory from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from game_rl.envs.observation import Observation, ObservationFormat


class Transitions(NamedTuple):
    """One vec step. Row i of each array belongs to env i; whoever made the arrays owns them.

    Attributes:
        observations: stacks, uint8 [n_envs, stack * C, H, W] as VecFrameStack makes them, or
            a dict of such arrays of parts.
        frames: the newest frame of each observation, packed, uint8 [n_envs, row_bytes].
        actions: int64 [n_envs], chosen for these observations.
        rewards: float32 [n_envs], as the env returned them.
        next_frames: the packed frames that followed, in the form of `frames`; where an episode
            ended, its true last frame.
        terminated: bool [n_envs], True where the game is over.
        truncated: bool [n_envs], True where a limit was hit; never both.
    """

    observations: Observation
    frames: NDArray[np.uint8]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    next_frames: NDArray[np.uint8]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class Feed(Protocol):
    """A receiver of every timestep of a training."""

    def append(self, step: Transitions) -> None:
        """Store one vec step."""


def how_episodes_ended(
    dones: NDArray[np.bool_], infos: Sequence[Mapping[str, Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return `terminated` and `truncated` of a vec step, from what a VecEnv returned."""
    truncated = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones
    return dones & ~truncated, truncated


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


def memory_layout(
    state_shape: tuple[int, ...], *, n_steps: int, n_envs: int, sequence: int
) -> ArrayLayout:
    """The states of the agents' memory before each sequence of a rollout."""
    return ArrayLayout("states", (-(-n_steps // sequence), n_envs, *state_shape), np.float32)


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
