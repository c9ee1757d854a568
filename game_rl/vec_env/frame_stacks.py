"""The newest frames of each env: stacked for the network, packed for the buffers."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Space = spaces.Space[Any]


class FrameStacks:
    """The stacks that SB3's VecFrameStack(channels_order="first") makes, each frame stored once.

    Early in an episode, a stack has zeros in place of the frames that do not exist yet.

    Args:
        ring: [size + 1, n_envs, *frame shape]. The workers write one row of it in each vec step,
            and the other `size` rows keep the frames that the learner saw last.
    """

    def __init__(self, ring: NDArray[Any]) -> None:
        self.newest = 0
        """Row that the workers are writing, or have just written."""
        self._ring = ring
        self._size = len(ring) - 1
        frame_shape = ring.shape[2:]
        self._shape = frame_shape
        if self._size > 1:
            self._shape = (self._size * frame_shape[0], *frame_shape[1:])

    def turn(self) -> None:
        """Make the oldest row the newest one, for the workers to overwrite."""
        self.newest = (self.newest + 1) % len(self._ring)

    def begin_episode(self, env: int | slice) -> None:
        """Forget all frames of `env` but the newest."""
        self._ring[self._rows(self._size)[:-1], env] = 0

    def all(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the stacks: [n_envs, size * C, H, W], or [n_envs, *frame shape] if `size` is 1.

        Args:
            out: contiguous array to fill and return, or None for a new one.
        """
        _, n_envs, *frame_shape = self._ring.shape
        if out is None:
            out = np.empty((n_envs, *self._shape), self._ring.dtype)
        stacks = out.reshape(n_envs, self._size, *frame_shape)
        for place, row in enumerate(self._rows(self._size)):
            stacks[:, place] = self._ring[row]
        return out

    def restore(self, stacks: NDArray[Any]) -> None:
        """Continue from the stacks that `all` returned earlier."""
        _, n_envs, *frame_shape = self._ring.shape
        frames = stacks.reshape(n_envs, self._size, *frame_shape)
        for place, row in enumerate(self._rows(self._size)):
            self._ring[row] = frames[:, place]

    def ending_with(self, env: int, last_frame: NDArray[Any]) -> NDArray[Any]:
        """Return a new array: the stack with `last_frame` in place of the newest row."""
        earlier = self._ring[self._rows(self._size)[:-1], env]
        return np.concatenate((earlier, last_frame[None])).reshape(self._shape)

    def before(self, env: int) -> NDArray[Any]:
        """Return a new array: the stack as it was before the last turn."""
        earlier = self._ring[self._rows(self._size + 1)[:-1], env]
        return earlier.reshape(self._shape)

    def _rows(self, count: int) -> list[int]:
        """Return the indices of the newest `count` rows, oldest first."""
        return [(self.newest - age) % len(self._ring) for age in range(count)][::-1]


def stacked_space(space: Space, size: int) -> Space:
    """Return the space of stacks of `size` observations.

    Raises:
        ValueError: the observations are not pictures, so they cannot be stacked.
    """
    if size == 1:
        return space
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) != 3:
        raise ValueError(f"only uint8 pictures [C, H, W] can be stacked, not {space}")
    low, high = (np.repeat(bound, size, axis=0) for bound in (space.low, space.high))
    return spaces.Box(low, high, dtype=np.uint8)


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
