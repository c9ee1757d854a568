"""The layout of `live.frames`, the file in which a running training shows what its agents do.

The file begins with a fixed head of 64 bytes, followed by this layout as JSON, one slot for each
env, and two blocks of the policy's values. All numbers are little-endian. A slot, and a block, is
valid if its `sequence` is even and not 0, and its `crc` is the crc32 of all bytes behind the crc.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.observation import SCREEN, ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.definition import Game, GameDefinition
from game_rl.games.part_format import PartFormat
from game_rl.games.part_numbers import entry_sizes, n_numbers
from game_rl.saved import Natural, Saved

MAGIC = b"GRLLIVE\x01"
HEAD_BYTES = 64
WANTED_AT = 16
"""Position of eight bytes that whoever watches changes at least every five seconds."""
CHECKED_FROM = 12
"""The crc of a slot or a block is that of its bytes from here on."""
MOST_OWN_TERMS_BYTES = 1_024

_ALIGNMENT = 64
_PART = "part."
_NAMES_BYTES, _NUMBERS_BYTES = 64 << 10, 16 << 10  # more than the games of the field have
_GREYS = (0, 85, 170, 255)

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
        return whole.ljust(_padded(len(whole)), b"\0")

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
        array: NDArray[Any] = slot[_PART + name]
        return array


def make_live_layout(
    game: Game,
    observation_format: ObservationFormat,
    *,
    run_id: str,
    n_envs: int,
    fps: float,
    has_probabilities: bool,
) -> LiveLayout:
    """Return the layout of a run that plays `game`; needs no emulator and no ROM."""
    definition = game.definition
    specs = definition.variables.items()
    bare = LiveLayout(
        run_id=run_id,
        game=game.name,
        fps=fps,
        n_envs=n_envs,
        channels=3 if game.is_colour else 1,
        bits=8 if game.is_colour else 2,
        palette=None if game.is_colour else tuple((grey, grey, grey) for grey in _GREYS),
        actions=game.action_names,
        action_values="probabilities" if has_probabilities else "q_values",
        variables=tuple(
            LiveVariable(
                name=name,
                size=n_numbers(spec) if spec.is_array else None,
                is_bits=spec.is_array and spec.type == "bits",
            )
            for name, spec in specs
        ),
        reward_terms=tuple(definition.rewards),
        start_states=tuple(definition.start_states),
        place=definition.place,
        parts=tuple(_parts(definition, observation_format)),
    )
    own_bytes = 0 if definition.reward is None else MOST_OWN_TERMS_BYTES
    return _with_fields(bare, observation_format, own_bytes)


def most_live_bytes(
    observation_format: ObservationFormat, *, n_envs: int, n_actions: int, four_shades: bool
) -> int:
    """Return the most that a live file takes, whatever the names and variables of the game."""
    pixels = SCREEN_HEIGHT * SCREEN_WIDTH * 3
    if four_shades:
        pixels //= 12
    shapes = observation_format.frame_shapes
    dtypes = {SCREEN: np.dtype(np.uint8)} | {n: p.dtype for n, p in observation_format.parts}
    seen: int = sum(math.prod(shape) * dtypes[name].itemsize for name, shape in shapes.items())
    each = pixels + seen + _NUMBERS_BYTES + 2 * 8 * (1 + n_actions)
    return _NAMES_BYTES + n_envs * each


_Array = tuple[str, str, tuple[int, ...]]
_GUARDS: list[_Array] = [("sequence", "<u8", ()), ("crc", "<u4", ())]


def _with_fields(
    layout: LiveLayout, observation_format: ObservationFormat, own_bytes: int
) -> LiveLayout:
    slot, slot_bytes = _fields(_slot_arrays(layout, observation_format, own_bytes))
    rows = ("rows", "<f8", (layout.n_envs, 1 + len(layout.actions)))
    values, values_bytes = _fields([*_GUARDS, ("timestep", "<i8", ()), rows])
    return layout.model_copy(
        update={
            "slot": slot,
            "slot_bytes": slot_bytes,
            "values": values,
            "values_bytes": values_bytes,
        }
    )


def _slot_arrays(
    layout: LiveLayout, observation_format: ObservationFormat, own_bytes: int
) -> Iterator[_Array]:
    yield from _GUARDS
    yield "action", "<i4", ()
    for name in ("timestep", "episode", "episode_timestep"):
        yield name, "<i8", ()
    yield "start_state", "<i4", ()
    yield "own_terms", "|u1", (own_bytes,)
    yield "reward_terms", "<f8", (len(layout.reward_terms),)
    for name, dtype, is_bits in (("variables", "<f8", False), ("flags", "|u1", True)):
        sizes = (each.size or 1 for each in layout.variables if each.is_bits == is_bits)
        yield name, dtype, (sum(sizes),)
    yield "episode_reward", "<f8", ()
    yield "pixels", "|u1", (layout.packing.nbytes,)
    dtypes = {SCREEN: np.dtype(np.uint8)} | {n: p.dtype for n, p in observation_format.parts}
    for part in layout.parts:
        shape = observation_format.frame_shapes[part.name]
        yield _PART + part.name, dtypes[part.name].newbyteorder("<").str, tuple(shape)


def _fields(arrays: Iterable[_Array]) -> tuple[tuple[LiveField, ...], int]:
    """Place the arrays one behind the other, each aligned to its numbers; return the size too."""
    fields, end = [], 0
    for name, dtype, shape in arrays:
        itemsize = np.dtype(dtype).itemsize
        start = math.ceil(end / itemsize) * itemsize
        fields.append(LiveField(name=name, dtype=dtype, shape=shape, offset=start))
        end = start + math.prod(shape) * itemsize
    return tuple(fields), _padded(end)


def _padded(n_bytes: int) -> int:
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


def _parts(definition: GameDefinition, observation_format: ObservationFormat) -> Iterator[LivePart]:
    if observation_format.screen is not None:
        yield LivePart(name=SCREEN, kind="screen")
    for name, part in observation_format.parts:
        labels = tuple(_labels(name, part, definition))
        yield LivePart(name=name, kind=part.kind, n_values=part.n_values, labels=labels)


def _labels(name: str, form: PartFormat, definition: GameDefinition) -> Iterator[str]:
    spec = definition.parts[name]
    if form.kind == "vector":
        for one, (n, _) in zip(spec.numbers, entry_sizes(spec, definition.variables), strict=True):
            yield from ([one.variable] if n == 1 else (f"{one.variable}[{i}]" for i in range(n)))
    elif spec.tiles is not None:
        yield from ("", *spec.tiles.classes)
    elif spec.visited is not None:
        yield from ("", "visited")
    elif spec.actions is not None:
        yield from ("", *definition.actions)
