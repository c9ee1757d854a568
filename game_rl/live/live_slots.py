"""The layout of a run's `live.frames`, made from its game; whoever only reads needs no game."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.observation import SCREEN, ObservationFormat
from game_rl.features.feature import Feature, PlannedRun
from game_rl.games.definition import Game, GameDefinition
from game_rl.live.live_layout import (
    MOST_OWN_TERMS_BYTES,
    PART_FIELD,
    LiveField,
    LiveLayout,
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
                size=spec.n_numbers if spec.is_array else None,
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


def _parts(definition: GameDefinition, observation_format: ObservationFormat) -> Iterator[LivePart]:
    if observation_format.screen is not None:
        yield LivePart(name=SCREEN, kind="screen")
    known = definition.game_parts()
    for name, form in observation_format.parts:
        labels = known[name].labels
        yield LivePart(name=name, kind=form.kind, n_values=form.n_values, labels=labels)


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
