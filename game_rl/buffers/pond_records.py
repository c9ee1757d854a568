"""Records of a Pond: the batch that is drawn from it, and the slots that it is refilled with."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

GOES_ON, TERMINATED, TRUNCATED, LAST_FRAME = range(4)
"""What followed a slot's timestep. LAST_FRAME marks a slot without one: a frame with no action."""


class PondBatch(NamedTuple):
    """A batch of timesteps to learn from; each tensor has one row for each timestep.

    Attributes:
        observations: uint8 [batch, frame_stack * C, H, W].
        actions: int64 [batch, 1].
        rewards: float32 [batch, 1], the discounted sum over up to n_step timesteps.
        next_observations: uint8, in the shape of `observations`, after the last of those timesteps.
            The two may share memory: copy one before you write to it.
        terminated: float32 [batch, 1], 1 where the game was over after those timesteps.
        discounts: float32 [batch, 1], gamma to the power of the number of those timesteps.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    terminated: torch.Tensor
    discounts: torch.Tensor


class Slots(NamedTuple):
    """Consecutive slots of one env, the oldest first; each array has one entry for each slot.

    Attributes:
        frames: packed, uint8 [n, packing.nbytes].
        endings: GOES_ON, TERMINATED, TRUNCATED or LAST_FRAME.
        ages: number of earlier frames of the episode that the frame's stack can use, at most
            frame_stack - 1.
    """

    frames: NDArray[np.uint8]
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    endings: NDArray[np.uint8]
    ages: NDArray[np.uint8]
