"""The interface through which an algorithm hands its timesteps to other stores."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.observation import Observation


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
