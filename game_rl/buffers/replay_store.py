"""What a replay store is asked for: timesteps in, batches out, bytes, save and restore."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from game_rl.buffers.layout import Feed
from game_rl.buffers.unpacking import Tensors
from game_rl.envs.observation import ObservationFormat
from game_rl.returns import LearnedRewards

GOES_ON, TERMINATED, TRUNCATED, LAST_FRAME = range(4)
"""What followed a slot's timestep. LAST_FRAME marks a slot without one: a frame with no action."""


class ReplayBatch(NamedTuple):
    """A batch of timesteps to learn from; each tensor has one row for each timestep.

    Attributes:
        observations: uint8 [batch, stack * C, H, W], or a dict of a tensor for each part.
        actions: int64 [batch, 1].
        rewards: float32 [batch, 1], the discounted sum over up to n_step timesteps.
        next_observations: in the form of `observations`, after the last of those timesteps.
            The two may share memory: copy one before you write to it.
        terminated: float32 [batch, 1], 1 where the game was over after those timesteps.
        discounts: float32 [batch, 1], gamma to the power of the number of those timesteps.
    """

    observations: Tensors
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: Tensors
    terminated: torch.Tensor
    discounts: torch.Tensor


class Slots(NamedTuple):
    """Consecutive slots of one env, the oldest first; each array has one entry for each slot.

    Attributes:
        frames: packed, uint8 [n, row_bytes].
        endings: GOES_ON, TERMINATED, TRUNCATED or LAST_FRAME.
        ages: number of earlier frames of the episode that the frame's stack can use.
    """

    frames: NDArray[np.uint8]
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    endings: NDArray[np.uint8]
    ages: NDArray[np.uint8]


class ReplayStore(Feed, Protocol):
    """What keeps the timesteps of a PackedReplayBuffer; it is built with the arguments of a Pond.

    Attributes:
        n_appended: timesteps of all envs together that were ever appended.
        mean_age: about how many timesteps of all envs came after those of the last sample, on
            average.
    """

    observation_format: ObservationFormat
    n_appended: int
    mean_age: float

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; its layout in `layout` forecasts them."""

    def __len__(self) -> int:
        """Timesteps that can be drawn."""

    def sample(
        self,
        batch_size: int,
        *,
        n_step: int = 1,
        gamma: float,
        device: torch.device | str = "cpu",
        learned: LearnedRewards | None = None,
    ) -> ReplayBatch:
        """Draw stored timesteps uniformly, with replacement.

        Args:
            learned: is applied to each timestep's reward, before they are summed.
        """

    def clear(self) -> None:
        """Remove all timesteps, as if nothing had ever been appended."""

    def state_dict(self) -> Mapping[str, NDArray[Any] | torch.Tensor]:
        """Return the whole state, for a file of a checkpoint; `rng` is the random generator."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become the store that `state` was taken from; its arrays may be StoredArrays.

        Raises:
            CheckpointError: `state` is of a store of another shape.
            ValueError: `state` is not that of such a store.
        """

    # ------------------------------------------------------------------ filled from a Lake

    @property
    def n_slots(self) -> int:
        """Slots of each env."""

    def position(self) -> dict[str, Any]:
        """Return all state but the slots, as plain data that survives a round trip through JSON."""

    def load_position(self, position: Mapping[str, Any]) -> None:
        """Become the store of that `position`, without its slots; add those with `put`."""

    def put(self, env: int, slots: Slots, *, is_open: bool) -> None:
        """Write the newest slots of an env; older ones cannot be drawn.

        Args:
            is_open: whether the last slot is the frame after the last timestep, without an action.
        """
