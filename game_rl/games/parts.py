"""The parts of an observation that game.yaml defines: their forms, and their values in an episode.

What a part shows of the episode so far, visited places and latest actions, is remembered here.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import N_TILES, TILE_SIDE, Emulator
from game_rl.files.saved import Blob, Saved
from game_rl.games.definition import Game, GameDefinition
from game_rl.games.map_offsets import read_map_offsets
from game_rl.games.own_parts import OwnParts, no_own_parts, own_format, own_values
from game_rl.games.part_format import PartFormat
from game_rl.games.part_numbers import category_values, n_numbers, vector_format, vector_values
from game_rl.games.part_spec import PartSpec, TilesSpec, VisitedSpec
from game_rl.games.variables import Values
from game_rl.games.visited_map import VisitedMap
from game_rl.games.visited_places import VisitedPlaces

PartValues = dict[str, NDArray[Any]]


class PartsState(Saved):
    """What the parts of an observation remember of the episode so far."""

    places: Blob | None = None
    """The visited places, as `VisitedPlaces` writes them; None if no part shows any."""
    actions: tuple[int, ...] = ()
    """The latest actions, as they are in the part that shows the most of them."""


def part_formats(definition: GameDefinition) -> dict[str, PartFormat]:
    """Return the forms of all parts that a game defines, by name."""
    return {name: _format(part, definition) for name, part in definition.parts.items()}


def _format(part: PartSpec, definition: GameDefinition) -> PartFormat:
    if part.vector is not None:
        return vector_format(part, definition.variables)
    if part.categories is not None:
        assert part.of is not None
        shape = (n_numbers(definition.variables[part.categories]),)
        return PartFormat.of_indices("categories", shape, part.of, is_stacked=part.stack)
    if part.tiles is not None:
        area = part.tiles.area
        n_values = len(part.tiles.classes) + 1
        if part.tiles.ids:
            n_values = 2 * N_TILES if definition.hardware == "cgb" else N_TILES
        shape_ = (1, area.height, area.width)
        return PartFormat.of_indices("grid", shape_, n_values, is_stacked=part.stack)
    if part.visited is not None:
        size = 2 * part.visited.radius * part.visited.scale
        return PartFormat.of_indices("grid", (1, size, size), 2, is_stacked=part.stack)
    if part.own is not None:
        return own_format(part.own, is_stacked=part.stack)
    assert part.actions is not None
    n_values = len(definition.actions) + 1
    return PartFormat.of_indices("categories", (part.actions,), n_values, is_stacked=part.stack)


def own_part_names(definition: GameDefinition, names: Collection[str]) -> tuple[str, ...]:
    """Return those of the parts that the game's own reward class makes."""
    return tuple(name for name in names if definition.parts[name].own is not None)


def unused_parts(chosen: Collection[str], *games: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the parts in saved game files that no observation has.

    A run is not another one because its game file has got a part that it does not use. The place is
    unused as well if only the map of visited places needs it.

    Args:
        chosen: names of the parts that observations have.
        games: the game files, as they are saved.
    """
    names = {name for game in games for name in game.get("parts", ())}
    unused = tuple(f"parts.{name}" for name in sorted(names.difference(chosen)))
    is_used = any(shows_place(chosen, game.get("parts", {})) for game in games)
    is_used |= any(_has_key("same_place_for", game.get("endings")) for game in games)
    return (*unused, "place_offsets", *(() if is_used else ("place",)))


def shows_place(chosen: Collection[str], parts: Mapping[str, Any]) -> bool:
    """Whether one of the chosen parts depends on the place; `parts` are as they are saved."""
    return any((parts.get(name) or {}).get("visited") is not None for name in chosen)


def _has_key(key: str, saved: object) -> bool:
    """Whether a key is somewhere in saved values and is not null."""
    if isinstance(saved, Mapping):
        return saved.get(key) is not None or any(_has_key(key, each) for each in saved.values())
    return isinstance(saved, list | tuple) and any(_has_key(key, each) for each in saved)


class EpisodeParts:
    """The parts of the observations of one running episode.

    Args:
        names: the parts that observations have.
        own: returns what the game's own reward class makes of the variables, by name.

    Attributes:
        variables: names of the variables that a timestep needs.

    Raises:
        GameFileError: a file of offsets is missing or wrong.
    """

    def __init__(self, game: Game, names: Sequence[str], own: OwnParts = no_own_parts) -> None:
        definition = game.definition
        formats = part_formats(definition)
        self._parts = tuple((name, definition.parts[name], formats[name]) for name in names)
        self._maps = {
            name: _visited_map(part.visited, game.folder)
            for name, part, _ in self._parts
            if part.visited is not None
        }
        self._class_of = {n: _class_of(p.tiles) for n, p, _ in self._parts if p.tiles is not None}
        self._own = own
        self._has_own = any(part.own is not None for _, part, _ in self._parts)
        self._place = (definition.place or ()) if self._maps else ()
        self.variables = frozenset({*self._place, *_named(part for _, part, _ in self._parts)})
        self._places = VisitedPlaces(1)
        self._n_actions = max((part.actions or 0 for _, part, _ in self._parts), default=0)
        self._actions: deque[int] = deque()
        self._forget()

    def _forget(self) -> None:
        self._places = VisitedPlaces(1)
        for visited in self._maps.values():
            visited.clear()
        self._actions = deque([0] * self._n_actions, self._n_actions)

    def reset(self, values: Values) -> None:
        self._forget()
        self._visit(values)

    def step(self, values: Values, action: int) -> None:
        """Remember a timestep.

        Args:
            values: the variables after it.
            action: the action that the agent chose.
        """
        self._visit(values)
        self._actions.append(action + 1)

    def _visit(self, values: Values) -> None:
        if self._maps:
            place = tuple(values[name] for name in self._place)
            if self._places.visit(place) == 1:
                for visited in self._maps.values():
                    visited.mark(place)

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        """Return the parts as they are now, in new arrays.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        made = self._own(values) if self._has_own else {}
        return {
            name: own_values(name, part.own, form, made)
            if part.own is not None
            else self._value(name, part, form, values, emulator)
            for name, part, form in self._parts
        }

    def _value(
        self, name: str, part: PartSpec, form: PartFormat, values: Values, emulator: Emulator
    ) -> NDArray[Any]:
        if part.vector is not None:
            return vector_values(name, part, values)
        if part.categories is not None:
            return category_values(name, part, form, values)
        if part.tiles is not None:
            return _tiles(part.tiles, self._class_of[name], emulator)
        if part.visited is not None:
            return self._maps[name].around(tuple(values[name] for name in self._place))
        assert part.actions is not None
        return np.array(tuple(self._actions)[-part.actions :], form.dtype)

    def save_state(self) -> PartsState:
        return PartsState(
            places=self._places.to_bytes() if len(self._places) else None,
            actions=tuple(self._actions),
        )

    def load_state(self, state: PartsState) -> None:
        self._forget()
        self._actions.extend(state.actions)
        if state.places is not None and self._maps:
            self._places.load_bytes(state.places)
            for place in self._places:
                for visited in self._maps.values():
                    visited.mark(place)


def _named(parts: Iterable[PartSpec]) -> Iterator[str]:
    for part in parts:
        yield from (name for _, name in part.references())


def _visited_map(spec: VisitedSpec, folder: Path) -> VisitedMap:
    offsets = {} if spec.offsets is None else read_map_offsets(folder / spec.offsets)
    return VisitedMap(spec.radius, spec.scale, offsets)


def _class_of(spec: TilesSpec) -> NDArray[Any]:
    """Return the class of each tile id, or the id itself."""
    if spec.ids:
        return np.arange(2 * N_TILES, dtype=np.int32)
    found = np.zeros(2 * N_TILES, np.uint8)
    for number, tiles in enumerate(spec.classes.values(), 1):
        found[list(tiles)] = number
    return found


def _tiles(spec: TilesSpec, class_of: NDArray[Any], emulator: Emulator) -> NDArray[Any]:
    """Return the classes of the area's tiles, [1, height, width]; see `Emulator.sprites`.

    As in PyBoy's `game_area`, a sprite is drawn into the cell of its top left corner, over those
    before it.
    """
    area = spec.tile_area
    grid: NDArray[Any] = class_of[emulator.tiles(area, follow_scroll=spec.follow_scroll)]
    for x, y, tile in emulator.sprites() if spec.sprites else ():
        column = x // TILE_SIDE - area.x
        row = y // TILE_SIDE - area.y
        if (class_of[tile] or spec.ids) and 0 <= column < area.width and 0 <= row < area.height:
            grid[row, column] = class_of[tile]
    return grid[None]
