"""What an algorithm that keeps no replay hands its timesteps to."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Feed(Protocol):
    """Takes every timestep of a training, a vec step at a time."""

    def append(
        self,
        *,
        observations: NDArray[np.uint8],
        frames: NDArray[np.uint8],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float32],
        next_frames: NDArray[np.uint8],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> None:
        """One vec step; row i of each array is env i, and the arrays stay the caller's.

        Args:
            observations: stacks, uint8 [n_envs, frame_stack * C, H, W] as VecFrameStack makes them.
            frames: the newest frame of each, packed, uint8 [n_envs, nbytes of the packing].
            actions: int64 [n_envs], taken on seeing them.
            rewards: float32 [n_envs], as the env gave them.
            next_frames: as `frames`, of what followed: the true last one where an episode ended.
            terminated: bool [n_envs]; the game is over.
            truncated: bool [n_envs]; a limit was hit. Never both.
        """
