"""`tiles`: a part that has the class of each tile of the background, or its id, as a grid."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import MAP_SIDE, N_TILES, TILE_SIDE, Emulator, TileArea
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import GamePart
from game_rl.games.variables import Values

_SCREEN_COLUMNS = 20
_SCREEN_ROWS = 18
_MOST_CLASSES = 255


class AreaSpec(StrictModel):
    """A rectangle of tiles, each of 8 x 8 pixels."""

    x: Annotated[int, Field(ge=0, lt=MAP_SIDE)] = 0
    y: Annotated[int, Field(ge=0, lt=MAP_SIDE)] = 0
    width: Annotated[int, Field(ge=1, le=MAP_SIDE)]
    height: Annotated[int, Field(ge=1, le=MAP_SIDE)]


_Tile = Annotated[int, Field(ge=0, lt=2 * N_TILES)]


class TilesSpec(StrictModel):
    """A grid with the class of each tile of the background, or its id."""

    area: AreaSpec
    """The tiles that the agent sees: of the screen with `follow_scroll`, otherwise of the 32 x 32
    tiles of the background's map."""
    follow_scroll: bool = False
    """Whether the area moves with the screen over the background's map."""
    sprites: bool = False
    """Whether sprites are drawn over the background: those whose tile has a class or, with `ids`,
    all."""
    classes: dict[str, tuple[_Tile, ...]] = Field(default={}, max_length=_MOST_CLASSES)
    """Tile ids of each class: 0 to 383, and 384 more for tiles of video RAM's bank 1. A cell is the
    number of its class, from 1 on in this order, and 0 if its tile has none."""
    ids: bool = Field(default=False, exclude_if=lambda ids: not ids)
    """Whether a cell is the id of its tile itself, in two bytes; in place of `classes`."""

    def problems(self) -> Iterable[Problem]:
        columns = MAP_SIDE
        rows = MAP_SIDE
        what = "the background's map"
        if self.follow_scroll:
            columns = _SCREEN_COLUMNS
            rows = _SCREEN_ROWS
            what = "the screen"
        for side, first, size, most in (
            ("width", self.area.x, self.area.width, columns),
            ("height", self.area.y, self.area.height, rows),
        ):
            if first + size > most:
                yield Problem(
                    ("area", side),
                    f"{first} + {size} tiles reach outside {what}, which has {columns} x {rows}; "
                    f"at most {max(0, most - first)} fit",
                    reads=(("follow_scroll",),),
                )
        if self.ids and self.classes:
            message = "does not go with `classes`, which stand for ids; remove one of the two"
            yield Problem(("ids",), message, reads=(("classes",),))
        elif not self.ids and not self.classes:
            message = "list the tiles of some classes, or write `ids: true` for the ids themselves"
            yield Problem(("classes",), message)
        yield from self._class_problems()

    def _class_problems(self) -> Iterator[Problem]:
        class_of: dict[int, str] = {}
        for name, tiles in self.classes.items():
            if not tiles:
                key = ("classes", name)
                yield Problem(key, "has no tiles; list their ids, or remove it")
            for tile in tiles:
                if tile in class_of:
                    where = "twice" if class_of[tile] == name else f"in {class_of[tile]} as well"
                    yield Problem(("classes", name), f"tile {tile} is {where}; remove one")
                class_of.setdefault(tile, name)


@dataclass(frozen=True, eq=False)
class TilesPart(GamePart):
    cell_pixels = TILE_SIDE

    tiles: TilesSpec

    @cached_property
    def form(self) -> PartFormat:
        n_values = len(self.tiles.classes) + 1
        if self.tiles.ids:
            n_values = 2 * N_TILES if self.game.hardware == "cgb" else N_TILES
        shape = (1, self.tiles.area.height, self.tiles.area.width)
        return PartFormat.of_indices("grid", shape, n_values, is_stacked=self.stack)

    @cached_property
    def _area(self) -> TileArea:
        area = self.tiles.area
        return TileArea(area.x, area.y, area.width, area.height)

    @cached_property
    def _class_of(self) -> NDArray[Any]:
        """The class of each tile id, or the id itself."""
        if self.tiles.ids:
            return np.arange(2 * N_TILES, dtype=np.int32)
        found = np.zeros(2 * N_TILES, np.uint8)
        for number, tiles in enumerate(self.tiles.classes.values(), 1):
            found[list(tiles)] = number
        return found

    def read(self, values: Values, emulator: Emulator) -> NDArray[Any]:
        """Return the classes of the area's tiles, [1, height, width]; see `Emulator.sprites`.

        As in PyBoy's `game_area`, a sprite is drawn into the cell of its top left corner, over
        those before it.
        """
        area = self._area
        class_of = self._class_of
        grid: NDArray[Any] = class_of[emulator.tiles(area, follow_scroll=self.tiles.follow_scroll)]
        if self.tiles.sprites:
            for x, y, tile in emulator.sprites():
                column = x // TILE_SIDE - area.x
                row = y // TILE_SIDE - area.y
                is_drawn = class_of[tile] or self.tiles.ids
                if is_drawn and 0 <= column < area.width and 0 <= row < area.height:
                    grid[row, column] = class_of[tile]
        return grid[None]

    @property
    def labels(self) -> tuple[str, ...]:
        return ("", *self.tiles.classes)

    def problems(self) -> Iterator[Problem]:
        if self.game.hardware == "cgb":
            return
        for name, tiles in self.tiles.classes.items():
            for tile in tiles:
                if tile >= N_TILES:
                    yield Problem(
                        ("tiles", "classes", name),
                        f"tile {tile} is in bank 1 of video RAM, which only `hardware: cgb` has; "
                        f"remove it, or write {tile - N_TILES}",
                        reads=(("hardware",),),
                    )
