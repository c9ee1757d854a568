"""The counts of visited places as grids: one for each map, or all maps beside each other."""

import base64
import importlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.files.run_dir import RunDir
from game_rl.places.place_counts import (
    MapId,
    PlaceCounts,
    Sheet,
    parse_place_counts,
    timesteps_of,
)

WORLD = "world"
"""Name of the layer that has all maps with an offset."""

MOST_CELLS = 2_048
"""Cells on a side of a layer."""
_CELL_SIDES = (1, 2, 4, 8, 16)
_MOST_DOTS = 0.25  # share of visited cells with fewer neighbours, of the four beside, than a way
FADING = 0.75
"""Share of the opacity that a place loses that was visited at the beginning only."""
_FEW_PLACES = 50  # too few to tell
_NEVER = 2**62  # a timestep


@dataclass(frozen=True, eq=False)
class PlaceLayer:
    """A grid of visits.

    Attributes:
        name: `world`, the map's variables as `map 3`, or the names of x and y if there is no map.
        map_id: the map; None for the world.
        x0, y0: coordinates of the first place of the first cell.
        counts: int64 [h, w], timesteps in each cell; rows are y, downwards.
        found, last: int64 [h, w], the timesteps of the first and the last visit of each cell.
        until: timestep up to which they were counted; 0 if that is unknown.
        cell_side: places on each side of a cell, more than 1 where a map is larger than 2,048.
    """

    name: str
    map_id: MapId | None
    x0: int
    y0: int
    counts: NDArray[np.int64]
    found: NDArray[np.int64]
    last: NDArray[np.int64]
    until: int
    cell_side: int = 1

    def ages(self) -> NDArray[np.float64]:
        """Return for each cell which share of the run has passed since the last visit."""
        return (self.until - self.last).clip(min=0) / max(self.until, 1)

    def at(self, timestep: int) -> "PlaceLayer":
        """Return the layer as it was, as if the visits of a cell lay evenly between the first and
        the last.
        """
        passed = (timestep - self.found) / np.maximum(self.last - self.found, 1)
        counts = 1 + np.floor((self.counts - 1) * passed.clip(0, 1)).astype(np.int64)
        counts[(self.found > timestep) | (self.counts == 0)] = 0
        last = np.minimum(self.last, timestep)
        return replace(self, counts=counts, last=last, until=timestep)

    def in_places(self, side: int) -> "PlaceLayer":
        """Return the layer of counts whose unit is `side` x `side` places, in places."""
        return replace(self, x0=self.x0 * side, y0=self.y0 * side, cell_side=self.cell_side * side)

    def coarser(self, factor: int) -> "PlaceLayer":
        """Return the layer with `factor` x `factor` cells in one."""
        if factor == 1:
            return self
        return replace(
            self,
            counts=_squares(self.counts, factor, 0).sum(axis=(1, 3)),
            found=_squares(self.found, factor, _NEVER).min(axis=(1, 3)),
            last=_squares(self.last, factor, 0).max(axis=(1, 3)),
            cell_side=self.cell_side * factor,
        )


def _squares(grid: NDArray[np.int64], factor: int, nothing: int) -> NDArray[np.int64]:
    """Return a grid as [rows, factor, columns, factor]."""
    height, width = grid.shape
    added = ((0, -height % factor), (0, -width % factor))
    padded = np.pad(grid, added, constant_values=nothing)
    return padded.reshape(-(-height // factor), factor, -(-width // factor), factor)


def readable(found: Sequence[PlaceLayer]) -> list[PlaceLayer]:
    """Return the layers with cells as large as it takes for ways to be lines, not dots.

    A player who walks from tile to tile leaves lines; one who walks several pixels in a timestep
    leaves dots.
    """
    if sum(np.count_nonzero(layer.counts) for layer in found) < _FEW_PLACES:
        return list(found)
    for side in _CELL_SIDES:
        coarse = [layer.coarser(side) for layer in found]
        n_visited = sum(np.count_nonzero(layer.counts) for layer in coarse)
        if sum(_n_dots(layer.counts > 0) for layer in coarse) <= _MOST_DOTS * n_visited:
            break
    return coarse


def _n_dots(visited: NDArray[np.bool_]) -> int:
    """Return how many visited cells have at most one beside them that was visited."""
    padded = np.pad(visited, 1).astype(np.int8)
    beside = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return int(np.count_nonzero(visited & (beside < 2)))


def layers(counts: PlaceCounts, most_cells: int = MOST_CELLS) -> list[PlaceLayer]:
    """Return the grids of all maps that were visited, the world first.

    Args:
        most_cells: cells on a side of a grid; a larger map has several places in a cell.
    """
    return list(each_layer(counts, most_cells))


def each_layer(counts: PlaceCounts, most_cells: int = MOST_CELLS) -> Iterator[PlaceLayer]:
    """Yield what `layers` returns, one after the other."""
    sheets: dict[MapId | None, list[Sheet]] = defaultdict(list)
    for sheet in counts.sheets():
        map_id = sheet.map_id
        if len(map_id) == 1 and map_id[0] in counts.offsets:
            x, y = counts.offsets[map_id[0]]
            sheets[None].append(sheet._replace(x=sheet.x + x, y=sheet.y + y))
        else:
            sheets[map_id].append(sheet)
    maps = sorted(sheets, key=lambda map_id: (map_id is not None, map_id or ()))
    for each in maps:
        yield _layer(each, sheets[each], counts, most_cells)


def _layer(
    map_id: MapId | None, sheets: Sequence[Sheet], of: PlaceCounts, most_cells: int
) -> PlaceLayer:
    left = min(int(each.xs.min()) for each in _visited(sheets))
    right = max(int(each.xs.max()) for each in _visited(sheets))
    top = min(int(each.ys.min()) for each in _visited(sheets))
    bottom = max(int(each.ys.max()) for each in _visited(sheets))
    width = right - left + 1
    height = bottom - top + 1
    side = -(-max(width, height) // most_cells)
    shape = (-(-height // side), -(-width // side))
    counts = np.zeros(shape, np.int64)
    found = np.full(shape, _NEVER)
    last = np.zeros(shape, np.int64)
    for each in _visited(sheets):
        cells = ((each.ys - top) // side, (each.xs - left) // side)
        np.add.at(counts, cells, each.visits)
        np.minimum.at(found, cells, each.found)
        np.maximum.at(last, cells, each.last)
    name = layer_name(map_id, of.names)
    return PlaceLayer(name, map_id, left, top, counts, found, last, of.until, side)


class _Visited(NamedTuple):
    """Places that were visited, as arrays."""

    xs: NDArray[np.int64]
    ys: NDArray[np.int64]
    visits: NDArray[np.uint32]
    found: NDArray[np.int64]
    last: NDArray[np.int64]


def _visited(sheets: Sequence[Sheet]) -> Iterator[_Visited]:
    """Yield the visited places of each sheet; it has some."""
    for sheet in sheets:
        rows, columns = np.nonzero(sheet.visits)
        yield _Visited(
            columns + sheet.x,
            rows + sheet.y,
            sheet.visits[rows, columns],
            timesteps_of(sheet.found[rows, columns]),
            timesteps_of(sheet.last[rows, columns]),
        )


def layer_name(map_id: MapId | None, names: Sequence[str]) -> str:
    """Return what a map is called: `world`, its variables, or x and y if there are no others."""
    if map_id is None:
        return WORLD
    if not map_id:
        return ", ".join(names)
    return ", ".join(f"{name} {number}" for name, number in zip(names, map_id, strict=False))


_MOST_SIDE = 192
"""Cells on a side: large enough to be seen where places are single pixels of a screen."""


def places_json(run_dir: RunDir) -> dict[str, Any]:
    """Return the layers of the map; empty if the run has none, or it cannot be read now."""
    try:
        counts = parse_place_counts(run_dir.places.read_bytes())
    except (OSError, ValueError):
        return {}
    return place_counts_json(counts, screens=run_dir.place_screens)


def place_counts_json(counts: PlaceCounts, *, screens: Path, side: int = 1) -> dict[str, Any]:
    """Return the layers of counts for the page, and the screens below them.

    Args:
        screens: the file of the screens, if there is one.
        side: places on each side of a unit of the counts.
    """
    offsets = {map_id: (side * x, side * y) for map_id, (x, y) in counts.offsets.items()}
    found: dict[str, Any] = {
        "names": list(counts.names),
        "offsets": {str(map_id): list(xy) for map_id, xy in offsets.items()},
        "n_places": counts.n_places,
        "layers": [_layer_json(layer.in_places(side)) for layer in each_layer(counts)],
    }
    if screens.is_file():
        module = importlib.import_module("game_rl.places.screen_map")
        found["screens"] = module.screen_map_json(screens)
    return found


def _layer_json(layer: PlaceLayer) -> dict[str, Any]:
    factor = -(-max(layer.counts.shape) // _MOST_SIDE)
    shown = layer.coarser(factor) if factor > 1 else layer
    height, width = shown.counts.shape
    most = int(shown.counts.max())
    # on a logarithmic scale, on which a place that was visited once is visible
    levels = np.ceil(255 * np.log1p(shown.counts) / np.log1p(most)).astype(np.uint8)
    strengths = np.where(shown.counts > 0, 255 * (1 - FADING * shown.ages()), 0)
    return {
        "name": shown.name,
        "map_id": None if shown.map_id is None else list(shown.map_id),
        "x0": shown.x0,
        "y0": shown.y0,
        "width": width,
        "height": height,
        "cell_side": shown.cell_side,
        "most": most,
        "levels": base64.b64encode(levels.tobytes()).decode(),
        "strengths": base64.b64encode(strengths.astype(np.uint8).tobytes()).decode(),
    }
