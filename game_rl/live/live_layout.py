"""The layout of `live.frames`, the file in which a running training shows what its agents do.

The file begins with a fixed head of 64 bytes, followed by this layout as JSON, one slot for each
env, and two blocks of the policy's values. All numbers are little-endian. A slot, and a block, is
valid if its `sequence` is even and not 0, and its `crc` is the crc32 of all bytes behind the crc.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.packing import FramePacking
from game_rl.files.saved import Natural, Saved

MAGIC = b"GRLLIVE\x01"
HEAD_BYTES = 64
WANTED_AT = 16
"""Position of eight bytes that whoever watches changes at least every five seconds."""
CHECKED_FROM = 12
"""The crc of a slot or a block is that of its bytes from here on."""
MOST_OWN_TERMS_BYTES = 1_024

_ALIGNMENT = 64
PART_FIELD = "part."
"""What the name of a part's field begins with."""

_Positive = Annotated[int, Field(gt=0)]


class LiveVariable(Saved):
    """A variable of game.yaml."""

    name: str
    size: Natural | None = None
    """Numbers of an array; null for a single number."""
    is_bits: bool = False
    """Whether it is an array of bits, which are in the field `flags` of a slot."""


class LivePart(Saved):
    """A part of the observation, or the screen as the agent gets it, at one timestep.

    Its values are the field `part.NAME` of a slot.
    """

    name: str
    kind: Literal["screen", "vector", "categories", "grid"]
    n_values: Natural = 0
    """Values of categories and grids are below this; 0 for others."""
    labels: tuple[str, ...] = ()
    """A name for each number of a vector, or for each value of categories and grids that has a
    name, from value 0 on."""


class LiveField(Saved):
    """A field of a slot: where it is and which array it holds."""

    name: str
    dtype: str
    shape: tuple[Natural, ...]
    offset: Natural


class LiveLayout(Saved):
    """What `live.frames` holds, and where."""

    version: Literal[1] = 1
    run_id: str
    game: str
    fps: float
    n_envs: _Positive
    height: _Positive = SCREEN_HEIGHT
    width: _Positive = SCREEN_WIDTH
    channels: Literal[1, 3]
    bits: Literal[2, 8]
    palette: tuple[tuple[int, int, int], ...] | None = None
    """Colours of the codes 0 to 3 of two-bit pixels; null for a screen in colour."""
    actions: tuple[str, ...]
    action_values: Literal["probabilities", "q_values"]
    """What the policy's `action_values` are."""
    variables: tuple[LiveVariable, ...] = ()
    reward_terms: tuple[str, ...] = ()
    start_states: tuple[str, ...]
    place: tuple[str, ...] | None = None
    """Variables that say where the player is."""
    parts: tuple[LivePart, ...] = ()
    slot: tuple[LiveField, ...] = ()
    slot_bytes: Natural = 0
    values: tuple[LiveField, ...] = ()
    values_bytes: Natural = 0

    @cached_property
    def packing(self) -> FramePacking:
        """The packing of `pixels`."""
        shape = (self.channels, self.height, self.width)
        return FramePacking(shape, bits=self.bits)

    @cached_property
    def slot_dtype(self) -> np.dtype[Any]:
        return _dtype(self.slot, self.slot_bytes)

    @cached_property
    def values_dtype(self) -> np.dtype[Any]:
        return _dtype(self.values, self.values_bytes)

    @cached_property
    def header(self) -> bytes:
        """All bytes before the first slot."""
        text = self.model_dump_json().encode()
        head = MAGIC + len(text).to_bytes(4, "little")
        whole = head.ljust(HEAD_BYTES, b"\0") + text
        return whole.ljust(padded_to_slot(len(whole)), b"\0")

    def slot_at(self, env: int) -> int:
        return len(self.header) + env * self.slot_bytes

    @property
    def values_at(self) -> int:
        """Position of the two blocks of values."""
        return self.slot_at(self.n_envs)

    @property
    def file_bytes(self) -> int:
        return self.values_at + 2 * self.values_bytes

    def part_of(self, slot: Any, name: str) -> NDArray[Any]:  # noqa: ANN401 - a record of NumPy
        array: NDArray[Any] = slot[PART_FIELD + name]
        return array


def padded_to_slot(n_bytes: int) -> int:
    return math.ceil(n_bytes / _ALIGNMENT) * _ALIGNMENT


def _dtype(fields: Sequence[LiveField], n_bytes: int) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [(field.dtype, field.shape) for field in fields],
            "offsets": [field.offset for field in fields],
            "itemsize": n_bytes,
        }
    )
