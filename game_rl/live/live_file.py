"""`live.frames`: what the agents of a running training do, for whoever watches; and its reader.

The training makes the file at its start and removes it at its end. Each worker writes into the
slots of its own envs, the training writes the policy's values, and readers say that they watch.
Nobody locks anything. A writer makes a slot's sequence number odd, writes, and makes it even; a
reader skips what is odd or has a wrong checksum, so a writer that is killed meanwhile leaves
nothing that could be mistaken for a picture.

The file begins with a fixed head of 64 bytes, followed by its layout as JSON, one slot for each
env, and two blocks of the policy's values. All numbers are little-endian. A slot, and a block, is
valid if its `sequence` is even and not 0, and its `crc` is the crc32 of all bytes behind the crc.

The file is read and written at positions. A mapping of it would give the same bytes, but a write to
a mapping kills the process when the disk is full.
"""

import json
import math
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.packing import FramePacking
from game_rl.files.durable_files import BINARY, read_at, write_at
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Natural, Saved

MAGIC = b"GRLLIVE\x01"
HEAD_BYTES = 64
WANTED_AT = 16
"""Position of eight bytes that whoever watches changes at least every five seconds."""
LEARNS_FROM_AT = 24
"""Position of the timesteps that the network learns from now, int64; 0 while the agents play."""
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


class LiveMapScreen(Saved):
    """Which part of the screen shows a map, in pixels; see `PlaceScreen`.

    Attributes:
        pixels: pixels that a step of x or y is.
    """

    left: Natural
    top: Natural
    width: _Positive
    height: _Positive
    pixels: _Positive


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
    map_screen: LiveMapScreen | None = None
    """Null for a game whose screens are not joined to maps."""
    place_names: dict[int, str] = Field(default={})
    """Names of maps."""
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


_ATTEMPTS = 4
_PAUSE_S = 0.001

Place = tuple[int | float, ...]


@dataclass(frozen=True, eq=False)
class LiveScreen:
    """One env at one timestep, after its action.

    Attributes:
        sequence: differs from that of the env's screen before.
        timestep: number of the env's timestep in this session of the run, from 1 on.
        episode: number of the env's episode in this session, from 0 on.
        episode_timestep: timesteps of the episode so far.
        action: index of the action that the agent chose.
        start_state: where the episode began; "" if that is none of game.yaml's start states.
        episode_reward: sum of the reward terms of the episode so far.
        reward_terms: what each has earned in the episode so far.
        place: the values of the game's `place`; None if it has none.
        map_at: which pixel of the map the upper left one of `map_screen` is; None if the
            screen shows no map.
        packed: the whole screen as it is in the file, uint8 [bytes]; see `LiveLayout.packing`.
        parts: the newest frame of each part of the observation as the agent gets it, its screen
            included: uint8 [C, H, W].
        value: what the policy expected in this timestep, or None if it is not known.
        action_values: probability or Q-value of each action; see `LiveLayout.action_values`.
    """

    env: int
    sequence: int
    timestep: int
    episode: int
    episode_timestep: int
    start_state: str
    action: int
    episode_reward: float
    reward_terms: Mapping[str, float]
    variables: Mapping[str, float | list[float]]
    place: Place | None
    map_at: tuple[int, int] | None
    packed: NDArray[np.uint8]
    parts: Mapping[str, NDArray[Any]]
    value: float | None
    action_values: list[float] | None
    layout: LiveLayout = field(repr=False)

    @cached_property
    def pixels(self) -> NDArray[np.uint8]:
        """The whole screen: grey uint8 [144, 160], of {0, 85, 170, 255}, or RGB [144, 160, 3]."""
        planes = self.layout.packing.unpack(self.packed)
        return planes[0] if len(planes) == 1 else np.ascontiguousarray(planes.transpose(1, 2, 0))


class LiveReader:
    """The live screens of a run's session; close it, or use it as a context manager.

    Attributes:
        layout: what the file holds.
        can_want: whether the training can be asked to write; False if this user may only read.
    """

    def __init__(self, path: Path, file: int, layout: LiveLayout, *, can_want: bool) -> None:
        self.layout = layout
        self.can_want = can_want
        self._path = path
        self._file = file
        self._identity = _identity(os.fstat(file))
        self._screens: dict[int, LiveScreen] = {}

    @classmethod
    def open(cls, run_dir: RunDir) -> "LiveReader | None":
        """Return a reader, or None if the run has no live file, or one of another version."""
        path = run_dir.live_frames
        for flags in (os.O_RDWR, os.O_RDONLY):
            with suppress(OSError):
                file = os.open(path, flags | BINARY)
                layout = _read_layout(file)
                if layout is None:
                    os.close(file)
                    return None
                return cls(path, file, layout, can_want=flags == os.O_RDWR)
        return None

    def want(self) -> None:
        """Say that somebody watches; without it, nothing is written after ten seconds.

        To be called every five seconds, or more often.
        """
        if self.can_want:
            with suppress(OSError):
                write_at(self._file, time.time_ns().to_bytes(8, "little"), WANTED_AT)

    @property
    def is_current(self) -> bool:
        """Whether the run still writes here; if not, the session has ended or a new one begun."""
        try:
            return _identity(self._path.stat()) == self._identity
        except OSError:
            return False

    def read(self) -> list[LiveScreen]:
        """Return the newest screen of each env that has written one, in the order of the envs.

        A slot that is being written is read again a few times. If it stays so, because its writer
        was killed, the env's last whole screen is returned.
        """
        torn = self._read(range(self.layout.n_envs))
        for _ in range(_ATTEMPTS - 1):
            if not torn:
                break
            time.sleep(_PAUSE_S)
            torn = self._read(torn)
        return [screen for _, screen in sorted(self._screens.items())]

    def learns_from(self) -> int:
        """Return the timesteps that the network learns from now; 0 while the agents play."""
        return int.from_bytes(read_at(self._file, 8, LEARNS_FROM_AT), "little")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "LiveReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, envs: "range | list[int]") -> list[int]:
        """Read the slots of these envs; return the envs whose slot is being written."""
        layout = self.layout
        torn = []
        n_bytes = layout.n_envs * layout.slot_bytes
        start = layout.slot_at(0)
        content = read_at(self._file, n_bytes + 2 * layout.values_bytes, start)
        if len(content) < n_bytes + 2 * layout.values_bytes:
            return []  # a file that was cut
        values = self._values(content[n_bytes:])
        for env in envs:
            whole = content[env * layout.slot_bytes : (env + 1) * layout.slot_bytes]
            sequence = int.from_bytes(whole[:8], "little")
            before = self._screens.get(env)
            if sequence == 0:
                continue
            if before is not None and before.sequence == sequence:
                has_new_values = before.value is None and before.timestep in values
                if not has_new_values:
                    continue
            if sequence % 2 or not _is_whole(whole):
                torn.append(env)
                continue
            slot = np.frombuffer(whole, layout.slot_dtype)[0]
            self._screens[env] = _screen(layout, env, slot, values)
        return torn

    def _values(self, blocks: bytes) -> dict[int, NDArray[np.float64]]:
        """Return the policy's values by timestep, each [n_envs, 1 + n_actions]."""
        size = self.layout.values_bytes
        found = {}
        for whole in (blocks[:size], blocks[size:]):
            block = np.frombuffer(whole, self.layout.values_dtype)[0]
            sequence = int(block["sequence"])
            if sequence and sequence % 2 == 0 and _is_whole(whole):
                found[int(block["timestep"])] = block["rows"]
        return found


def _is_whole(slot: bytes) -> bool:
    crc = int.from_bytes(slot[CHECKED_FROM - 4 : CHECKED_FROM], "little")
    return zlib.crc32(memoryview(slot)[CHECKED_FROM:]) == crc


def _screen(
    layout: LiveLayout,
    env: int,
    slot: Any,  # noqa: ANN401 - a record of NumPy
    values: Mapping[int, NDArray[np.float64]],
) -> LiveScreen:
    variables = _variables(layout, slot["variables"].tolist(), slot["flags"].tolist())
    start_state = int(slot["start_state"])
    own_terms = slot["own_terms"].tobytes().rstrip(b"\0")
    terms = dict(zip(layout.reward_terms, slot["reward_terms"].tolist(), strict=True))
    timestep = int(slot["timestep"])
    row = values[timestep][env].tolist() if timestep in values else [math.nan]
    is_known = not math.isnan(row[0])
    place = layout.place
    map_at: tuple[int, int] | None = None
    if layout.map_screen is not None:
        shows_map, left, top = slot["map_at"].tolist()
        if shows_map:
            map_at = (left, top)
    return LiveScreen(
        env=env,
        sequence=int(slot["sequence"]),
        timestep=timestep,
        episode=int(slot["episode"]),
        episode_timestep=int(slot["episode_timestep"]),
        start_state=layout.start_states[start_state] if start_state >= 0 else "",
        action=int(slot["action"]),
        episode_reward=float(slot["episode_reward"]),
        reward_terms=terms | (json.loads(own_terms) if own_terms else {}),
        variables=variables,
        place=None if place is None else tuple(variables[name] for name in place),  # type: ignore[misc]  # numbers
        map_at=map_at,
        packed=slot["pixels"],
        parts={part.name: layout.part_of(slot, part.name) for part in layout.parts},
        value=row[0] if is_known else None,
        action_values=row[1:] if is_known else None,
        layout=layout,
    )


def _variables(
    layout: LiveLayout, numbers: list[float], flags: list[float]
) -> dict[str, float | list[float]]:
    found: dict[str, float | list[float]] = {}
    left = {False: iter(numbers), True: iter(flags)}
    for variable in layout.variables:
        mine = left[variable.is_bits]
        if variable.size is None:
            found[variable.name] = next(mine)
        else:
            found[variable.name] = list(islice(mine, variable.size))
    return found


def _read_layout(file: int) -> LiveLayout | None:
    head = read_at(file, HEAD_BYTES, 0)
    if head[: len(MAGIC)] != MAGIC:
        return None
    size = int.from_bytes(head[len(MAGIC) : len(MAGIC) + 4], "little")
    try:
        return LiveLayout.model_validate_json(read_at(file, size, HEAD_BYTES))
    except ValidationError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
