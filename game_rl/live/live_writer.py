"""The writers of `live.frames`, whose layout is made from the run's game.

One writes an env's slot, one the policy's values. Neither raises an error when the disk fails:
nobody who watches a training may end it.
"""

import json
import math
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import SCREEN, Observation, ObservationFormat
from game_rl.features.feature import Feature, PlannedRun
from game_rl.files.durable_files import BINARY, read_at, rename, write_at
from game_rl.games.definition import Game
from game_rl.games.screen_area import PlaceScreen
from game_rl.games.variables import Values
from game_rl.live.live_file import (
    CHECKED_FROM,
    LEARNS_FROM_AT,
    MOST_OWN_TERMS_BYTES,
    PART_FIELD,
    WANTED_AT,
    LiveField,
    LiveLayout,
    LiveMapScreen,
    LivePart,
    LiveVariable,
    padded_to_slot,
)

_GREYS = (0, 85, 170, 255)
_NAMES_BYTES = 64 << 10  # more than the games of the field have
_NUMBERS_BYTES = 16 << 10


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
    known = definition.game_parts()
    parts = tuple(
        LivePart(name=name, kind=form.kind, n_values=form.n_values, labels=known[name].labels)
        for name, form in observation_format.parts
    )
    if observation_format.screen is not None:
        parts = (LivePart(name=SCREEN, kind="screen"), *parts)
    layout = LiveLayout(
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
                size=spec.n_numbers if spec.is_array else None,
                is_bits=spec.is_array and spec.type == "bits",
            )
            for name, spec in specs
        ),
        reward_terms=tuple(dict.fromkeys((*definition.rewards, *game.potentials))),
        start_states=tuple(definition.start_states),
        place=definition.place,
        map_screen=_map_screen(definition.place_screen),
        place_names=game.map_names(),
        parts=parts,
    )
    own_bytes = 0 if definition.reward is None else MOST_OWN_TERMS_BYTES
    slot, slot_bytes = _fields(_slot_arrays(layout, observation_format, own_bytes))
    rows = ("rows", "<f8", (n_envs, 1 + len(layout.actions)))
    values, values_bytes = _fields([*_GUARDS, ("timestep", "<i8", ()), rows])
    placed = {"slot": slot, "slot_bytes": slot_bytes}
    placed |= {"values": values, "values_bytes": values_bytes}
    return layout.model_copy(update=placed)


def _map_screen(screen: PlaceScreen | None) -> LiveMapScreen | None:
    if screen is None:
        return None
    return LiveMapScreen(**screen.crop.model_dump(), pixels=screen.pixels)


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
    if layout.map_screen is not None:
        yield "map_at", "<i8", (3,)  # whether it shows a map, x and y of its corner there
    yield "pixels", "|u1", (layout.packing.nbytes,)
    dtypes = {SCREEN: np.dtype(np.uint8)} | {n: p.dtype for n, p in observation_format.parts}
    for part in layout.parts:
        shape = observation_format.frame_shapes[part.name]
        yield PART_FIELD + part.name, dtypes[part.name].newbyteorder("<").str, tuple(shape)


def _fields(arrays: Iterable[_Array]) -> tuple[tuple[LiveField, ...], int]:
    """Place the arrays one behind the other, each aligned to its numbers; return the size too."""
    fields = []
    end = 0
    for name, dtype, shape in arrays:
        itemsize = np.dtype(dtype).itemsize
        start = math.ceil(end / itemsize) * itemsize
        fields.append(LiveField(name=name, dtype=dtype, shape=shape, offset=start))
        end = start + math.prod(shape) * itemsize
    return tuple(fields), padded_to_slot(end)


class LiveFeature(Feature):
    """The file for whoever watches; a run is forecast as if somebody watched it all the time."""

    def removed_bytes(self, run: PlannedRun, *, plays: bool) -> int:
        if not run.config.live.fps or not plays:
            return 0
        return most_live_bytes(
            run.observation_format,
            n_envs=run.config.env.n_envs,
            n_actions=run.n_actions,
            four_shades=run.four_shades,
        )


_SEQUENCE_BYTES = 8
_WATCHED_FOR_S = 10.0


class GuardedRecord:
    """A record of the file that readers never see half written; one process writes it.

    Attributes:
        fields: the record, to be filled in before `write`.
    """

    def __init__(self, file: int, at: int, dtype: np.dtype[Any]) -> None:
        whole = np.zeros(1, dtype)
        self.fields: Any = whole[0]  # a view
        self._bytes = whole.view(np.uint8).data
        self._file = file
        self._at = at
        before = read_at(file, _SEQUENCE_BYTES, at)
        self._sequence = int.from_bytes(before, "little")

    @property
    def is_new(self) -> bool:
        """Whether nothing has been written here."""
        return self._sequence == 0

    def write(self) -> None:
        """Write the record: an odd sequence number, all else, the next even number."""
        odd = self._sequence + 1 + self._sequence % 2  # a killed writer may have left an odd one
        self.fields["crc"] = zlib.crc32(self._bytes[CHECKED_FROM:])
        with suppress(OSError):
            write_at(self._file, odd.to_bytes(_SEQUENCE_BYTES, "little"), self._at)
            write_at(self._file, self._bytes[_SEQUENCE_BYTES:], self._at + _SEQUENCE_BYTES)
            self._sequence = odd + 1
            write_at(self._file, self._sequence.to_bytes(_SEQUENCE_BYTES, "little"), self._at)


class ShownStep(NamedTuple):
    """What a game shows after a timestep.

    Attributes:
        screen: view of the whole screen, uint8 [144, 160, 3].
        reward_terms: what each has earned in the episode so far.
        map_at: which pixel of the map is in the upper left corner of what shows it; None if the
            screen shows no map.
    """

    screen: NDArray[np.uint8]
    start_state: str
    episode_timestep: int
    reward_terms: Mapping[str, float]
    variables: Values
    map_at: tuple[int, int] | None = None


def draw_next(env: GameBoyEnv) -> None:
    """Let the next timestep draw its last frame, whatever the observations have."""
    env.player.draws = True


def shown_step(env: GameBoyEnv) -> ShownStep:
    """Return what the game shows after the timestep that `draw_next` has announced."""
    env.player.draws = False
    episode = env.episode
    variables = env.read_variables()
    return ShownStep(
        env.emulator.screen(),
        episode.began_in,
        episode.timesteps,
        env.reward_terms,
        variables,
        _map_at(env, variables),
    )


def _map_at(env: GameBoyEnv, variables: Values) -> tuple[int, int] | None:
    definition = env.game.definition
    if definition.place is None or definition.place_screen is None:
        return None
    place = tuple(variables[name] for name in definition.place)
    return definition.place_screen.shown_at(place, variables)


class SlotWriter:
    """Writes what one env shows; each env has one writer.

    Attributes:
        episode: number of the env's episode, counted by the owner.
    """

    def __init__(self, file: int, layout: LiveLayout, env: int) -> None:
        self._layout = layout
        at = layout.slot_at(env)
        self._record = GuardedRecord(file, at, layout.slot_dtype)
        self._start_states = {name: index for index, name in enumerate(layout.start_states)}
        self.episode = 0
        if not self._record.is_new:  # the worker before has died
            whole = read_at(file, layout.slot_bytes, at)
            self.episode = int(np.frombuffer(whole, layout.slot_dtype)[0]["episode"]) + 1

    def write(
        self, step: ShownStep, observation: Observation, *, action: int, timestep: int
    ) -> None:
        """Write a timestep.

        Args:
            observation: the env's own, not stacked.
            timestep: number of the timestep in the session.
        """
        fields = self._record.fields
        layout = self._layout
        fields["timestep"] = timestep
        fields["episode"] = self.episode
        fields["episode_timestep"] = step.episode_timestep
        fields["action"] = action
        fields["start_state"] = self._start_states.get(step.start_state, -1)
        terms = step.reward_terms
        fields["reward_terms"] = [terms.get(name, 0.0) for name in layout.reward_terms]
        fields["episode_reward"] = sum(terms.values())
        if len(fields["own_terms"]):  # those of the game's own reward class, if there is room
            own = {
                name: earned for name, earned in terms.items() if name not in layout.reward_terms
            }
            while len(text := json.dumps(own).encode()) > MOST_OWN_TERMS_BYTES:
                own.popitem()
            fields["own_terms"] = np.frombuffer(text.ljust(MOST_OWN_TERMS_BYTES, b"\0"), np.uint8)
        fields["variables"] = _numbers(step.variables, layout, are_bits=False)
        if len(fields["flags"]):
            fields["flags"] = _numbers(step.variables, layout, are_bits=True)
        if layout.map_screen is not None:
            fields["map_at"] = (False, 0, 0) if step.map_at is None else (True, *step.map_at)
        fields["pixels"] = _pixels(step.screen, layout)
        for part in layout.parts:
            values = observation[part.name] if isinstance(observation, Mapping) else observation
            layout.part_of(fields, part.name)[...] = values
        self._record.write()


def open_live_file(path: Path) -> int:
    """Return a descriptor of the file, for a worker."""
    return os.open(path, os.O_RDWR | BINARY)


class LiveFile:
    """The live file of a session: it makes it, and removes it when it is closed.

    Args:
        clock: in seconds.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(
        self, path: Path, layout: LiveLayout, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self.layout = layout
        self._clock = clock
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            # all bytes are written, so that later writes need no space on the disk
            temporary.write_bytes(layout.header.ljust(layout.file_bytes, b"\0"))
            rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self._file = open_live_file(path)
        size = layout.values_bytes
        self._blocks = [
            GuardedRecord(self._file, layout.values_at + n * size, layout.values_dtype)
            for n in (0, 1)
        ]
        self._wanted = self._read_wanted()
        self._wanted_until = 0.0

    def is_watched(self) -> bool:
        """Whether somebody has said so in the last ten seconds; reads eight bytes."""
        wanted = self._read_wanted()
        now = self._clock()
        if wanted != self._wanted:
            self._wanted = wanted
            self._wanted_until = now + _WATCHED_FOR_S
        return now < self._wanted_until

    def write_values(self, timestep: int, rows: NDArray[np.float32]) -> None:
        """Write the policy's values: for each env its value, then that of each action.

        The two blocks take turns, so that the values of the timestep before stay readable.
        """
        block = self._blocks[0]
        block.fields["timestep"] = timestep
        block.fields["rows"] = rows
        block.write()
        self._blocks.reverse()

    def write_learns_from(self, timesteps: int) -> None:
        """Write the timesteps that the network learns from now; 0: the agents play."""
        with suppress(OSError):
            write_at(self._file, timesteps.to_bytes(8, "little"), LEARNS_FROM_AT)

    def close(self) -> None:
        """Remove the file; may be called twice."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        with suppress(OSError):  # on Windows, somebody may read it
            self.path.unlink(missing_ok=True)

    def _read_wanted(self) -> bytes:
        with suppress(OSError):
            return read_at(self._file, 8, WANTED_AT)
        return b""


def _numbers(values: Values, layout: LiveLayout, *, are_bits: bool) -> list[float]:
    numbers: list[float] = []
    for variable in layout.variables:
        if variable.is_bits != are_bits:
            continue
        value = values[variable.name]
        numbers += [value] if variable.size is None else value
    return numbers


def _pixels(screen: NDArray[np.uint8], layout: LiveLayout) -> NDArray[np.uint8]:
    if layout.channels == 3:
        return layout.packing.pack(np.ascontiguousarray(screen.transpose(2, 0, 1)))
    shades = screen[None, :, :, 0]
    try:
        return layout.packing.pack(shades)
    except ValueError:  # a screen with more shades, which the agent may not look at
        return layout.packing.pack(shades // 85 * 85)
