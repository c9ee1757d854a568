"""What an observation is, and how a screen becomes one frame of it.

A frame is grey or RGB, has full or half size, and may be a crop of the screen.

The grey of a four-shade screen loses nothing: shade s is 255 - 85 s, and the mean of a 2 x 2 block
is 255 - 85 S // 4, where S is the sum of its four shades (13 possible levels). The grey of a colour
screen is ITU-R BT.601 luma in integers, (77 R + 150 G + 29 B) >> 8, and half size rounds the mean
of the block.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.config.schema import frame_shape
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.screen_area import CropSpec

Pixels = NDArray[np.uint8]
Observation = NDArray[Any] | Mapping[str, NDArray[Any]]
"""One array, or with parts a dict of arrays; of one env, or of a batch."""

SCREEN = "screen"
"""Name of the part that is the stack of screens."""


def part_space(part: PartFormat, stack: int) -> spaces.Box:
    """Return the space of a part in an observation; `stack` of 1 for one timestep."""
    low, high = (-np.inf, np.inf) if part.kind == "vector" else (0, part.n_values - 1)
    return spaces.Box(low, high, part.stacked_shape(stack), part.dtype.type)


@dataclass(frozen=True)
class ObservationFormat:
    """What an observation is: a stack of the newest screens, the oldest first, or named parts.

    Without `parts` an observation is the stack, a uint8 array [stack * C, H, W]. With them it is a
    dict of arrays, one for each part, among which the stack is the part "screen".

    What belongs to one timestep is a frame: the newest screen, and the newest array of each part.
    It is stored as one row of bytes, the screen first and then the parts by name. Batches may have
    any number of leading axes.

    Attributes:
        screen: how one screen is packed; None if observations have no screen.
        stack: screens in an observation, and arrays of the parts that are stacked.
        parts: the other parts with their names, sorted by name.
    """

    screen: FramePacking | None
    stack: int
    parts: tuple[tuple[str, PartFormat], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parts]
        assert names == sorted(names)
        assert SCREEN not in names
        assert self.parts or self.screen is not None

    @property
    def is_dict(self) -> bool:
        """Whether observations are dicts of parts."""
        return bool(self.parts)

    @property
    def frame_shape(self) -> tuple[int, int, int]:
        """Shape of one screen, (C, H, W)."""
        assert self.screen is not None
        return self.screen.shape

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a stack of screens, (stack * C, H, W)."""
        channels, height, width = self.frame_shape
        return self.stack * channels, height, width

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The space of observations, as the network gets them."""
        return self._space(self.stack)

    @property
    def frame_space(self) -> spaces.Box | spaces.Dict:
        """The space of the observations of a single env, whose screens are not stacked."""
        return self._space(1)

    def _space(self, stack: int) -> spaces.Box | spaces.Dict:
        screens = {}
        if self.screen is not None:
            channels, height, width = self.frame_shape
            screens[SCREEN] = spaces.Box(0, 255, (stack * channels, height, width), np.uint8)
        if not self.is_dict:
            return screens[SCREEN]
        return spaces.Dict(screens | {name: part_space(part, stack) for name, part in self.parts})

    @cached_property
    def packings(self) -> Mapping[str, FramePacking | PartFormat]:
        """How each part of a frame is packed, the screen, which is first, included."""
        screens = {} if self.screen is None else {SCREEN: self.screen}
        return {**screens, **dict(self.parts)}

    @cached_property
    def stacks(self) -> Mapping[str, int]:
        """For each part, the screen included, the number of its arrays in an observation."""
        screens = {} if self.screen is None else {SCREEN: self.stack}
        return screens | {name: self.stack if part.is_stacked else 1 for name, part in self.parts}

    @cached_property
    def part_bytes(self) -> Mapping[str, int]:
        """Bytes of each part of a frame as it is stored, the screen included."""
        return {name: packing.nbytes for name, packing in self.packings.items()}

    @property
    def row_bytes(self) -> int:
        """Bytes of one frame as it is stored."""
        return sum(self.part_bytes.values())

    @cached_property
    def columns(self) -> Mapping[str, slice]:
        """The bytes of each part within a row, the screen included."""
        ends = itertools.accumulate(self.part_bytes.values())
        sizes = self.part_bytes.items()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes, ends, strict=True)}

    @property
    def nbytes(self) -> int:
        """Bytes of an observation as the network gets it."""
        screens = 0 if self.screen is None else prod(self.shape)
        return screens + sum(
            prod(part.stacked_shape(self.stack)) * part.dtype.itemsize for _, part in self.parts
        )

    def pack(self, frames: Observation) -> Pixels:
        """Pack frames, [..., *shape] or a dict of such arrays, into new rows [..., row_bytes].

        Raises:
            ValueError: a value cannot be stored.
        """
        if not self.is_dict:
            assert self.screen is not None
            return self.screen.pack(np.asarray(frames))
        assert isinstance(frames, Mapping)
        packed = []
        for name, packing in self.packings.items():
            try:
                packed.append(packing.pack(frames[name]))
            except ValueError as error:
                raise (error if name == SCREEN else _of_part(name, error)) from None
        return np.concatenate(packed, axis=-1)

    def unpack(self, rows: Pixels) -> Observation:
        """Unpack rows [..., row_bytes] from `pack` into new frames."""
        if not self.is_dict:
            assert self.screen is not None
            return self.screen.unpack(rows)
        places = self.columns
        return {n: each.unpack(rows[..., places[n]]) for n, each in self.packings.items()}

    def newest(self, observations: Observation) -> Observation:
        """Return the newest frames of a batch of observations, as views of their arrays."""
        if not isinstance(observations, Mapping):
            assert not self.is_dict
            return observations[:, -self.frame_shape[0] :]
        shapes = self.frame_shapes
        return {name: array[:, -shapes[name][0] :] for name, array in observations.items()}

    def pack_stacks(self, observations: Observation) -> Pixels:
        """Pack a batch of observations [n, ...] into rows [n, stack, row_bytes], the oldest first.

        Only the newest row of an observation has the parts that are not stacked; the others have
        zeros there, as all rows from before an episode's beginning have everywhere.

        Raises:
            ValueError: a value cannot be stored.
        """
        shapes = self.frame_shapes
        columns = self.columns
        by_name = observations if isinstance(observations, Mapping) else {SCREEN: observations}
        n = len(next(iter(by_name.values())))
        rows = np.zeros((n, self.stack, self.row_bytes), np.uint8)
        for name, k in self.stacks.items():
            frames = by_name[name].reshape(n, k, *shapes[name])
            try:
                rows[:, self.stack - k :, columns[name]] = self.packings[name].pack(frames)
            except ValueError as error:
                raise (_of_part(name, error) if self.is_dict else error) from None
        return rows

    def unpack_stacks(self, rows: Pixels) -> Observation:
        """Unpack rows from `pack_stacks` into a new batch of observations."""
        n = len(rows)
        columns = self.columns
        shapes = self.frame_shapes
        found = {}
        for name, k in self.stacks.items():
            (first, *others) = shapes[name]
            frames = self.packings[name].unpack(rows[:, self.stack - k :, columns[name]])
            found[name] = frames.reshape(n, k * first, *others)
        return found if self.is_dict else found[SCREEN]

    def pack_underway(
        self, observations: Observation, which: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Pixels]:
        """Pack those of a batch of observations that have earlier frames of their episodes.

        Args:
            which: indices of the observations that are looked at.

        Returns:
            The indices of those with earlier frames, and their rows as `pack_stacks` makes them.
        """
        if isinstance(observations, Mapping):
            rows = self.pack_stacks(rows_of(observations, which))
            is_underway = rows[:, :-1].any(axis=(1, 2))
            return which[is_underway], rows[is_underway]
        earlier = observations[:, : -self.frame_shape[0]]
        late = [i for i in which.tolist() if earlier[i].any()]
        if not late:  # as at almost every episode's beginning
            return which[:0], np.empty((0, self.stack, self.row_bytes), np.uint8)
        return np.array(late, np.int64), self.pack_stacks(observations[late])

    @cached_property
    def frame_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each part at one timestep, the screen included."""
        return {name: packing.shape for name, packing in self.packings.items()}

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Check that the observations of an env are of this format.

        Raises:
            ValueError: they have other parts or another shape.
        """
        if not self.is_dict:
            if space.shape != self.shape:
                raise ValueError(f"stacks are {space.shape}, not {self.shape}")
        elif space != self.space:
            raise ValueError(f"observations are {space}, not {self.space}")


def _of_part(name: str, error: ValueError) -> ValueError:
    return ValueError(f"part {name} of an observation: {error}")


def rows_of(
    observations: Observation, which: int | slice | list[int] | NDArray[Any]
) -> Observation:
    """Return one or some of a batch of observations or frames."""
    if isinstance(observations, Mapping):
        return {name: array[which] for name, array in observations.items()}
    return observations[which]


def parts_seen(observation: Observation | None) -> dict[str, NDArray[Any]]:
    """Return the parts of an observation but the screen."""
    if not isinstance(observation, Mapping):
        return {}
    return {name: values for name, values in observation.items() if name != SCREEN}


@dataclass(frozen=True)
class FrameFormat:
    """How a screen becomes a frame.

    Attributes:
        four_shades: the screen has R = G = B in {255, 170, 85, 0}.
    """

    size: Literal["full", "half"] = "half"
    colour: Literal["grey", "rgb"] = "grey"
    four_shades: bool = True
    crop: CropSpec = field(default_factory=CropSpec)

    @property
    def shape(self) -> tuple[int, int, int]:
        return frame_shape(self.size, self.colour, self.crop.height, self.crop.width)

    @property
    def packing(self) -> FramePacking:
        """The packing in which frames of this format are stored."""
        rounding: Literal[2, 3] = 2 if self.colour == "rgb" else 3
        if not self.four_shades:
            return FramePacking(self.shape, bits=8, rounding=rounding)
        bits: Literal[2, 4] = 2 if self.size == "full" else 4
        return FramePacking(self.shape, bits=bits, rounding=rounding, is_one_plane=True)

    def observe(self, screen: Pixels) -> Pixels:
        """Convert a [144, 160, 3] screen to a new, contiguous uint8 [C, H, W] array."""
        crop = self.crop
        part = screen[crop.top : crop.top + crop.height, crop.left : crop.left + crop.width]
        if self.colour == "rgb":
            if self.size == "full":
                return np.ascontiguousarray(part.transpose(2, 0, 1))
            return np.stack([_rounded_half(part[:, :, channel]) for channel in range(3)])
        if self.four_shades:
            shades = part[:, :, 0]
            return _four_shades_half(shades) if self.size == "half" else shades.copy()[None]
        wide = part.astype(np.uint16)
        weighted = wide[:, :, 0] * 77 + wide[:, :, 1] * 150 + wide[:, :, 2] * 29  # up to 65,280
        luma = (weighted >> 8).astype(np.uint8)
        return _rounded_half(luma)[None] if self.size == "half" else luma[None]


def _four_shades_half(shades: Pixels) -> Pixels:
    """Compute 255 - 85 S // 4 in bytes only, which takes half the time of a table look-up.

    A pixel is 85 q with q = 3 - shade. Sums of four pixels wrap around, but 85 x 253 = 1 modulo
    256, so 253 times the sum is Q, the sum of the four q. The level is
    (85 Q + 3) // 4 = 21 Q + (Q + 3) // 4.
    """
    plane = shades.copy()
    pairs = (plane[0::2] + plane[1::2]).view(np.uint16)  # the bytes of two neighbours
    quarters = (pairs + (pairs >> 8)).astype(np.uint8)
    quarters *= 253
    levels = quarters * 21
    quarters += 3
    quarters >>= 2
    levels += quarters
    return levels[None]


def _rounded_half(plane: Pixels) -> Pixels:
    wide = plane.astype(np.uint16)
    rows = wide[0::2] + wide[1::2]
    return ((rows[:, 0::2] + rows[:, 1::2] + 2) >> 2).astype(np.uint8)


def observation_batch(observations: Sequence[Observation]) -> Observation:
    """Return a new batch of single observations."""
    first = observations[0]
    if isinstance(first, Mapping):
        of_parts = cast("Sequence[Mapping[str, NDArray[Any]]]", observations)
        return {name: np.stack([each[name] for each in of_parts]) for name in first}
    return np.stack(cast("Sequence[NDArray[Any]]", observations))


def n_observations(batch: Observation) -> int:
    """Return the number of observations in a batch."""
    return len(next(iter(batch.values())) if isinstance(batch, Mapping) else batch)
