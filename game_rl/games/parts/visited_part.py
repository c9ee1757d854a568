"""`visited`: a part that has the places around the player that an episode visited, as a grid."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import (
    CustomParts,
    GamePart,
    PartsReader,
    PartValues,
    unfit,
)
from game_rl.games.place import Place, VisitedPlaces, read_map_offsets
from game_rl.games.variable_spec import is_always_whole
from game_rl.games.variables import Values

_SIDE = 64  # places of a sheet; a map of any size is a few of them

_Sheet = tuple[Place, int, int]


class VisitedSpec(StrictModel):
    """A grid with the places around the player that were visited in this episode."""

    radius: Annotated[int, Field(ge=1, le=128)]
    """The grid starts this many places to the left of the player and above, and is twice as many
    places wide and high."""
    size: Annotated[int, Field(ge=2, le=512)] | None = None
    """Side of the grid, a multiple of twice the radius: 48 with a radius of 12 makes each place 2 x
    2 cells. null: a cell for each place."""
    offsets: Path | None = None
    """Path of a YAML file, relative to game.yaml, that places maps side by side."""

    def problems(self) -> Iterable[Problem]:
        side = 2 * self.radius
        if self.size is not None and self.size % side:
            yield Problem(
                ("size",),
                f"{self.size} is not a multiple of 2 x radius = {side}; write "
                f"{max(1, round(self.size / side)) * side}, or remove the line for {side}",
                reads=(("radius",),),
            )

    @property
    def scale(self) -> int:
        """Cells on each side of a place."""
        return 1 if self.size is None else self.size // (2 * self.radius)


class VisitedMap:
    """Draws what was visited around a place.

    A place is the map's variables, then x and y. Places of maps that have an offset are parts of
    one world. Any other map is a world of its own, of which nothing is seen from elsewhere.

    Args:
        offsets: x and y in the world of each map's place 0, 0.
    """

    def __init__(self, spec: VisitedSpec, offsets: Mapping[int, tuple[int, int]]) -> None:
        self._radius = spec.radius
        self._scale = spec.scale
        self._offsets = offsets
        self._sheets: dict[_Sheet, NDArray[np.uint8]] = {}

    def clear(self) -> None:
        self._sheets.clear()

    def mark(self, place: Place) -> None:
        world, x, y = self._in_the_world(place)
        key = (world, y // _SIDE, x // _SIDE)
        sheet = self._sheets.get(key)
        if sheet is None:
            sheet = self._sheets[key] = np.zeros((_SIDE, _SIDE), np.uint8)
        sheet[y % _SIDE, x % _SIDE] = 1

    def around(self, place: Place) -> NDArray[np.uint8]:
        """Return a new [1, size, size] of 0 and 1; rows are y, downwards.

        The place itself is at row and column `radius`, times `scale`.
        """
        world, x, y = self._in_the_world(place)
        side = 2 * self._radius
        top = y - self._radius
        left = x - self._radius
        found = np.zeros((side, side), np.uint8)
        for row in range(top // _SIDE, (top + side - 1) // _SIDE + 1):
            for column in range(left // _SIDE, (left + side - 1) // _SIDE + 1):
                sheet = self._sheets.get((world, row, column))
                if sheet is not None:
                    into, rows = _overlap(top, side, row)
                    across, columns = _overlap(left, side, column)
                    found[into, across] = sheet[rows, columns]
        return found.repeat(self._scale, axis=0).repeat(self._scale, axis=1)[None]

    def _in_the_world(self, place: Place) -> tuple[Place, int, int]:
        *maps, x, y = place
        offset = self._offsets.get(int(maps[0])) if maps else None
        if offset is None:
            return tuple(maps), int(x), int(y)
        return (), int(x) + offset[0], int(y) + offset[1]


def _overlap(first: int, n: int, sheet: int) -> tuple[slice, slice]:
    """Return which of `n` places from `first` on lie on a sheet, and where on it they are."""
    start = max(first, sheet * _SIDE)
    end = min(first + n, (sheet + 1) * _SIDE)
    origin = sheet * _SIDE
    return slice(start - first, end - first), slice(start - origin, end - origin)


class VisitedReader(PartsReader["VisitedPart"]):
    """Remembers each place of the episode once for all parts."""

    state_key = "places"

    def __init__(self, parts: Sequence["VisitedPart"], folder: Path, custom: CustomParts) -> None:
        super().__init__(parts, folder, custom)
        self._names = parts[0].variables
        self._maps: dict[str, VisitedMap] = {}
        for part in parts:
            file = part.visited.offsets
            offsets = {} if file is None else read_map_offsets(self._folder / file).maps
            self._maps[part.name] = VisitedMap(part.visited, offsets)
        self._places = VisitedPlaces(1)

    def reset(self, values: Values) -> None:
        self.load_state(None)
        self.step(values, 0)

    def step(self, values: Values, action: int) -> None:
        place = self._place(values)
        if self._places.visit(place) == 1:
            self._mark(place)

    def _mark(self, place: Place) -> None:
        for visited in self._maps.values():
            visited.mark(place)

    def _place(self, values: Values) -> Place:
        return tuple(values[name] for name in self._names)

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        place = self._place(values)
        return {name: visited.around(place) for name, visited in self._maps.items()}

    def save_state(self) -> bytes | None:
        return self._places.to_bytes() if len(self._places) else None

    def load_state(self, state: bytes | None) -> None:
        self._places = VisitedPlaces(1)
        for visited in self._maps.values():
            visited.clear()
        if state is not None:
            self._places.load_bytes(state)
            for place in self._places:
                self._mark(place)


@dataclass(frozen=True, eq=False)
class VisitedPart(GamePart):
    shows_place = True
    reader = VisitedReader
    labels = ("", "visited")
    marks_middle = True

    visited: VisitedSpec

    @cached_property
    def form(self) -> PartFormat:
        size = 2 * self.visited.radius * self.visited.scale
        return PartFormat.of_indices("grid", (1, size, size), 2, is_stacked=self.stack)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.game.place or ()

    def offset_files(self) -> Iterator[tuple[Key, Path]]:
        if self.visited.offsets is not None:
            yield ("visited", "offsets"), self.visited.offsets

    def problems(self) -> Iterator[Problem]:
        place = self.game.place
        reads = (("place",),)
        if place is None or len(place) < 2:
            yield Problem(
                ("visited",),
                "needs to know where the player is; name the variables that say so, the last two "
                "of them x and y, as in `place: [map, x, y]`, next to `parts`",
                reads,
            )
            return
        if self.visited.offsets is not None and len(place) != 3:
            yield Problem(
                ("visited", "offsets"),
                f"places maps, but `place` has {len(place)} variables, not [map, x, y]; remove "
                "`offsets`, or name one variable for the map",
                reads,
            )
        variables = self.game.variables
        for name in place:
            if name in variables and not is_always_whole(name, variables):
                what = "in `place` is not always a whole number; name variables that are"
                yield unfit(("visited",), name, what)
