"""What a Pond is drawn from as, and what it is refilled with."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

GOES_ON, TERMINATED, TRUNCATED, LAST_FRAME = range(4)
"""What came after a timestep; a frame on which nothing was done is the last one."""


class PondBatch(NamedTuple):
    """Timesteps as they are learned from; each tensor has a row for each of them.

    Attributes:
        observations: uint8 [batch, frame_stack * C, H, W].
        actions: int64 [batch, 1].
        rewards: float32 [batch, 1], the discounted sum over up to n_step timesteps.
        next_observations: as `observations`, after the last of those timesteps. The two may share
            memory: make a copy before writing to one.
        terminated: float32 [batch, 1], 1 where the game was over then.
        discounts: float32 [batch, 1], gamma to the number of those timesteps.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    terminated: torch.Tensor
    discounts: torch.Tensor


class Slots(NamedTuple):
    """Consecutive slots of one env, the oldest first; arrays of one value for each.

    Attributes:
        frames: packed, uint8 [n, packing.nbytes].
        endings: GOES_ON, TERMINATED, TRUNCATED or LAST_FRAME.
        ages: of each frame in its episode, at most frame_stack - 1.
    """

    frames: NDArray[np.uint8]
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    endings: NDArray[np.uint8]
    ages: NDArray[np.uint8]
