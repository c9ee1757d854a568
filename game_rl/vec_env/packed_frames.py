"""A vec step's frames as they are stored."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Packed = NDArray[np.uint8]


class PackedFrames(NamedTuple):
    """The newest frame of each env, uint8 [n_envs, nbytes of FramePacking].

    Attributes:
        shown: in the observations.
        reached: by the last timestep: as `shown`, with an episode's true last frame where one
            ended; the same array if none did.
    """

    shown: Packed
    reached: Packed


def packed_frames(shown: Packed, last_frames: dict[int, Packed]) -> PackedFrames:
    """`last_frames` are those of the envs whose episodes ended, by number."""
    if not last_frames:
        return PackedFrames(shown, shown)
    reached = shown.copy()
    for number, frame in last_frames.items():
        reached[number] = frame
    return PackedFrames(shown, reached)


def joined_frames(first: PackedFrames, second: PackedFrames) -> PackedFrames:
    """Of the envs of `first`, then those of `second`; new arrays."""
    shown = np.concatenate((first.shown, second.shown))
    if first.reached is first.shown and second.reached is second.shown:
        return PackedFrames(shown, shown)
    return PackedFrames(shown, np.concatenate((first.reached, second.reached)))
