"""The frames of a vec step, packed as buffers store them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Packed = NDArray[np.uint8]


class PackedFrames(NamedTuple):
    """The newest frame of each env, uint8 [n_envs, nbytes of FramePacking].

    Attributes:
        shown: the frames in the observations.
        reached: the frames that the last timestep led to. They differ from `shown` where an
            episode ended: there it is the last frame of that episode. The same array as `shown`
            if no episode ended.
    """

    shown: Packed
    reached: Packed


def packed_frames(shown: Packed, last_frames: dict[int, Packed]) -> PackedFrames:
    """Return `shown` with the last frames of the episodes that ended, which are keyed by env."""
    if not last_frames:
        return PackedFrames(shown, shown)
    reached = shown.copy()
    for number, frame in last_frames.items():
        reached[number] = frame
    return PackedFrames(shown, reached)


def joined_frames(first: PackedFrames, second: PackedFrames) -> PackedFrames:
    """Concatenate the frames of the envs of `first` and of `second` into new arrays."""
    shown = np.concatenate((first.shown, second.shown))
    if first.reached is first.shown and second.reached is second.shown:
        return PackedFrames(shown, shown)
    return PackedFrames(shown, np.concatenate((first.reached, second.reached)))
