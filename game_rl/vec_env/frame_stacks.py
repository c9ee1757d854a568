"""The observations of a vec env: their arrays, and the newest frames of each env.

Frames are stacked for the network and packed for the buffers. A Dict or a Tuple space has an array
for each part, other spaces a single one.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.envs.observation import ObservationFormat

Space = spaces.Space[Any]
Arrays = NDArray[Any] | dict[str, NDArray[Any]] | tuple[NDArray[Any], ...]
"""What a vec env returns as observations; spelled as SB3's VecEnvObs."""


def in_parts(space: Space) -> Any:  # noqa: ANN401
    """Return the spaces of a Dict as a dict, those of a Tuple as a tuple, or else the space."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return tuple(space.spaces) if isinstance(space, spaces.Tuple) else space


def each_part(act: Callable[..., Any], parts: Any, *others: Any) -> Any:  # noqa: ANN401
    """Apply `act` to each value of a dict or a tuple, in its order, or to a single value.

    Args:
        parts: decides the keys and their order.
        others: further arguments of `act`, in the same structure.

    Returns:
        The results, in the structure of `parts`.
    """
    if isinstance(parts, Mapping):
        return {key: act(value, *(other[key] for other in others)) for key, value in parts.items()}
    if isinstance(parts, tuple):
        return tuple(act(*values) for values in zip(parts, *others, strict=True))
    return act(parts, *others)


def part_items(parts: Any) -> list[tuple[str | int | None, Any]]:  # noqa: ANN401
    """Return the parts with their keys; a single value has the key None."""
    if isinstance(parts, Mapping):
        return list(parts.items())
    return list(enumerate(parts)) if isinstance(parts, tuple) else [(None, parts)]


def space_bytes(space: Space) -> int:
    """Return the bytes of an observation of a space of arrays."""
    sizes = [(part.shape, part.dtype) for _, part in part_items(in_parts(space))]
    return sum(prod(shape) * dtype.itemsize for shape, dtype in sizes)


FrameStack = int | Mapping[str, int]
"""Frames in an observation: of all its parts, or of each, by name; 1 for those without entry."""


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

    @property
    def newest_rows(self) -> tuple[int, ...]:
        """The newest row alone; PartStacks has one for each part."""
        return (self.newest,)

    @property
    def newest_frames(self) -> NDArray[Any]:
        """The newest frame of each env, as a view."""
        frames: NDArray[Any] = self._ring[self.newest]
        return frames

    def put(self, env: int, frame: Any) -> None:  # noqa: ANN401
        """Write the newest frame of `env`."""
        self._ring[self.newest, env] = frame

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


class PartStacks:
    """The FrameStacks of each part of a dict or a tuple, with the same methods.

    Args:
        rings: a ring for each part, as FrameStacks has one; their sizes may differ.
    """

    def __init__(self, rings: Arrays) -> None:
        self._parts = each_part(FrameStacks, rings)

    @property
    def _all_parts(self) -> tuple[FrameStacks, ...]:
        parts = self._parts
        return tuple(parts.values()) if isinstance(parts, dict) else parts

    @property
    def newest_rows(self) -> tuple[int, ...]:
        return tuple(part.newest for part in self._all_parts)

    @property
    def newest_frames(self) -> Arrays:
        frames: Arrays = each_part(lambda part: part.newest_frames, self._parts)
        return frames

    def put(self, env: int, frame: Any) -> None:  # noqa: ANN401
        each_part(lambda part, its: part.put(env, its), self._parts, frame)

    def turn(self) -> None:
        for part in self._all_parts:
            part.turn()

    def begin_episode(self, env: int | slice) -> None:
        for part in self._all_parts:
            part.begin_episode(env)

    def all(self, out: Arrays | None = None) -> Arrays:
        stacks: Arrays
        if out is None:
            stacks = each_part(FrameStacks.all, self._parts)
        else:
            stacks = each_part(FrameStacks.all, self._parts, out)
        return stacks

    def restore(self, stacks: Arrays) -> None:
        each_part(FrameStacks.restore, self._parts, stacks)

    def ending_with(self, env: int, last_frame: Arrays) -> Arrays:
        stack: Arrays = each_part(
            lambda part, last: part.ending_with(env, last), self._parts, last_frame
        )
        return stack

    def before(self, env: int) -> Arrays:
        stack: Arrays = each_part(lambda part: part.before(env), self._parts)
        return stack


def stacks_in(rings: Arrays) -> FrameStacks | PartStacks:
    """Return the stacks of a single ring, or of a ring for each part."""
    return FrameStacks(rings) if isinstance(rings, np.ndarray) else PartStacks(rings)


def new_stacks(space: Space, frame_stack: FrameStack) -> FrameStacks | PartStacks:
    """Return stacks of a single env with observations of `space`, outside of shared memory."""

    def ring(part: Space, size: int) -> NDArray[Any]:
        assert part.shape is not None
        return np.zeros((size + 1, 1, *part.shape), part.dtype)

    rings: Arrays = each_part(ring, in_parts(space), stack_sizes(space, frame_stack))
    return stacks_in(rings)


def frame_stack_of(observation_format: ObservationFormat) -> FrameStack:
    return observation_format.stacks if observation_format.is_dict else observation_format.stack


def stack_sizes(space: Space, frame_stack: FrameStack) -> Any:  # noqa: ANN401
    """Return the frames in an observation, for each part of `space` or as a single number.

    Raises:
        ValueError: `frame_stack` names a part that does not exist, or tuples should be stacked.
    """
    parts = in_parts(space)
    if isinstance(frame_stack, Mapping):
        if not isinstance(parts, dict):
            raise ValueError(f"frame_stack has parts, but the observations have none: {space}")
        if unknown := sorted(frame_stack.keys() - parts.keys()):
            raise ValueError(
                f"frame_stack has {unknown[0]!r}, but the parts of an observation are "
                + ", ".join(map(repr, parts))
            )
        return {name: frame_stack.get(name, 1) for name in parts}
    if isinstance(parts, tuple) and frame_stack > 1:
        raise ValueError(f"only arrays and dicts of arrays can be stacked, not {space}")
    return each_part(lambda _: frame_stack, parts)


def stacked_space(space: Space, frame_stack: FrameStack) -> Space:
    """Return the space of stacks of `frame_stack` observations.

    Raises:
        ValueError: the observations, or those of their parts that are stacked, cannot be.
    """
    sizes = stack_sizes(space, frame_stack)
    if isinstance(sizes, int):
        return space if sizes == 1 else _stacked_pictures(space, sizes)
    if not isinstance(sizes, dict) or set(sizes.values()) <= {1}:
        return space
    parts = in_parts(space)
    return spaces.Dict([(name, _stacked_part(name, parts[name], k)) for name, k in sizes.items()])


def _stacked_pictures(space: Space, size: int) -> spaces.Box:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) != 3:
        raise ValueError(f"only uint8 pictures [C, H, W] can be stacked, not {space}")
    return _repeated(space, size)


def _stacked_part(name: str, space: Space, size: int) -> Space:
    if size == 1:
        return space
    if not isinstance(space, spaces.Box) or not space.shape:
        raise ValueError(f"only boxes with an axis can be stacked, but part {name!r} is {space}")
    return _repeated(space, size)


def _repeated(space: spaces.Box, size: int) -> spaces.Box:
    low, high = (np.repeat(bound, size, axis=0) for bound in (space.low, space.high))
    return spaces.Box(low, high, dtype=space.dtype.type)


Packed = NDArray[np.uint8]


class PackedFrames(NamedTuple):
    """The newest frame of each env, uint8 [n_envs, row_bytes of ObservationFormat].

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
