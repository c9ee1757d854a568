"""The maps of a game as pictures: screens below, visits above, borders and names of rooms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.places.place_counts import MapId, PlaceCounts
from game_rl.places.place_layers import MOST_CELLS, PlaceLayer, layer_name, layers, readable
from game_rl.places.screen_map import MapPicture, ScreenMap

_UNSEEN = (24, 24, 27)
_DIMMED = 0.55  # brightness of screens, so that visits are seen on them
_VISITS = 0.6  # opacity of visits
_TEXT = (245, 245, 248)
_SHADOW = (16, 16, 18)
_UNSEEN_BORDER = (84, 84, 90)
_TEXT_HEIGHT = 12

_Box = tuple[int, int, int, int]  # left, top, right, bottom

Colours = Callable[[PlaceLayer], NDArray[np.uint8]]
"""Makes the colours of a layer's cells, uint8 [h, w, 4] RGBA."""


@dataclass(frozen=True)
class Room:
    """A map that lies in the world beside others: its name, its pixels, whether it has a screen.

    Without a screen, its pixels are those of the places that were visited.
    """

    name: str
    left: int
    top: int
    right: int
    bottom: int
    is_seen: bool = True

    @property
    def box(self) -> _Box:
        return self.left, self.top, self.right, self.bottom


@dataclass(frozen=True, eq=False)
class JoinedMap:
    """A map, or several beside each other.

    Attributes:
        map_id: the map; None for the world.
        left, top, right, bottom: what is drawn, in pixels of the map.
        pictures: what was seen, where it lies in this map.
        rooms: the maps in the world; empty for a map that lies alone.
        layer: how often each place was visited; None if it was not.
        pixels: pixels that a step of x or y is.
    """

    name: str
    map_id: MapId | None
    left: int
    top: int
    right: int
    bottom: int
    pictures: Sequence[MapPicture]
    rooms: Sequence[Room]
    layer: PlaceLayer | None
    pixels: int
    _backgrounds: dict[tuple[object, ...], Image.Image] = field(default_factory=dict, repr=False)

    def size(self, shrink: int) -> tuple[int, int]:
        """Return width and height with `shrink` x `shrink` pixels in one."""
        return -(-(self.right - self.left) // shrink), -(-(self.bottom - self.top) // shrink)

    def pixel(self, x: int, y: int, zoom: int, shrink: int) -> tuple[int, int]:
        """Return which pixel of the drawn map the middle of a place is."""
        middle = self.pixels // 2
        left = x * self.pixels + middle - self.left
        top = y * self.pixels + middle - self.top
        return left * zoom // shrink, top * zoom // shrink

    def background(self, shrink: int = 1, brightness: float = 1.0) -> Image.Image:
        """Return the screens alone, with one pixel of `shrink` x `shrink`, RGBA.

        What nobody has seen is transparent.
        """
        found = Image.new("RGBA", self.size(shrink), (0, 0, 0, 0))
        dimmed = (np.arange(256) * brightness).astype(np.uint8)
        for picture in self.pictures:
            alpha = np.where(picture.seen, np.uint8(255), np.uint8(0))[..., None]
            own = Image.fromarray(np.concatenate((dimmed[picture.pixels], alpha), axis=-1))
            own = _resized(own, picture.shrink, shrink)
            at = ((picture.x - self.left) // shrink, (picture.y - self.top) // shrink)
            found.alpha_composite(own, at)
        return found

    def drawn(self, zoom: int, shrink: int, colours: Colours) -> Image.Image:
        """Return the map as people see it, RGB.

        Args:
            zoom: pixels on each side of a pixel of the map.
            shrink: pixels of the map on each side of a pixel; one of both is 1.
            colours: makes the colours of a layer's cells, uint8 [h, w, 4] RGBA.
        """
        key = (shrink, *map(id, self.pictures))
        if key not in self._backgrounds:
            self._backgrounds[key] = self.background(shrink, _DIMMED)
        seen = self._backgrounds[key]
        found = Image.new("RGB", seen.size, _UNSEEN)
        found.paste(seen, mask=seen)
        if self.layer is not None:
            visits = self._visits(self.layer, shrink, colours)
            opacity = _VISITS if self.pictures else 1
            found.paste(visits, mask=visits.getchannel("A").point(lambda a: round(a * opacity)))
        if zoom > 1:
            size = (found.width * zoom, found.height * zoom)
            found = found.resize(size, Image.Resampling.NEAREST)
        self._draw_rooms(found, zoom, shrink)
        return found

    def at(self, timestep: int) -> "JoinedMap":
        """Return the map as it was; a room is on it from the first visit on."""
        layer = self.layer
        if layer is None:
            return replace(self, pictures=(), rooms=())
        cell = layer.cell_side * self.pixels
        x0 = layer.x0 * self.pixels
        y0 = layer.y0 * self.pixels

        def was_visited(left: int, top: int, right: int, bottom: int) -> bool:
            rows = _cells(top - y0, bottom - y0, cell)
            columns = _cells(left - x0, right - x0, cell)
            return bool((layer.found[rows, columns] <= timestep).any())

        pictures = [each for each in self.pictures if was_visited(*_box(each))]
        rooms = [each for each in self.rooms if was_visited(*each.box)]
        return replace(self, pictures=pictures, rooms=rooms, layer=layer.at(timestep))

    def _visits(self, layer: PlaceLayer, shrink: int, colours: Colours) -> Image.Image:
        cell = layer.cell_side * self.pixels
        own = Image.fromarray(colours(layer))
        if cell >= shrink:
            size = (own.width * cell // shrink, own.height * cell // shrink)
            own = own.resize(size, Image.Resampling.NEAREST)
        else:
            own = own.reduce(shrink // cell)
        found = Image.new("RGBA", self.size(shrink), (0, 0, 0, 0))
        x = layer.x0 * self.pixels - self.left
        y = layer.y0 * self.pixels - self.top
        found.paste(own, (x // shrink, y // shrink))
        return found

    def _draw_rooms(self, found: Image.Image, zoom: int, shrink: int) -> None:
        draw = ImageDraw.Draw(found)
        for room in self.rooms:
            left, top, right, bottom = (
                (number - origin) * zoom // shrink
                for number, origin in (
                    (room.left, self.left),
                    (room.top, self.top),
                    (room.right, self.left),
                    (room.bottom, self.top),
                )
            )
            corners = (left, top, max(left, right - 1), max(top, bottom - 1))
            draw.rectangle(corners, outline=_SHADOW if room.is_seen else _UNSEEN_BORDER)
            width = draw.textlength(room.name)
            if room.name and width + 6 <= right - left and bottom - top >= _TEXT_HEIGHT + 4:
                draw.rectangle((left, top, left + width + 5, top + _TEXT_HEIGHT + 1), fill=_SHADOW)
                draw.text((left + 3, top + 1), room.name, fill=_TEXT)


def joined_maps(
    counts: PlaceCounts,
    joined: ScreenMap,
    *,
    pixels: int,
    names: Mapping[int, str],
    side: int = 1,
    most_cells: int = MOST_CELLS,
) -> list[JoinedMap]:
    """Return all maps that were seen or visited, the world first.

    Args:
        pixels: pixels that a step of x or y is.
        names: names of maps.
        side: places on each side of a unit of the counts.
        most_cells: as in `layers`.
    """
    found = readable(layers(counts, most_cells))
    visited = {layer.map_id: layer.in_places(side) for layer in found}
    seen: dict[MapId | None, list[MapPicture]] = {}
    rooms: dict[MapId, Room] = {}
    if None in visited:
        rooms = _visited_rooms(counts, visited[None], pixels, side, names)
    for map_id in joined.maps():
        picture = joined.picture(map_id)
        key: MapId | None = map_id
        if len(map_id) == 1 and map_id[0] in counts.offsets:
            key = None
            x, y = counts.offsets[map_id[0]]
            unit = pixels * side
            picture = picture._replace(x=picture.x + x * unit, y=picture.y + y * unit)
            rooms[map_id] = Room(names.get(map_id[0], ""), *_box(picture))
        seen.setdefault(key, []).append(picture)
    keys = sorted({*visited, *seen}, key=lambda key: (key is not None, key or ()))
    return [
        _joined_map(
            _name(key, counts.names, names),
            key,
            seen.get(key, ()),
            list(rooms.values()) if key is None else (),
            visited.get(key),
            pixels,
        )
        for key in keys
    ]


def _visited_rooms(
    counts: PlaceCounts, world: PlaceLayer, pixels: int, side: int, names: Mapping[int, str]
) -> dict[MapId, Room]:
    """Return the maps in the world that were visited, with the pixels of their visited cells."""
    boxes: dict[MapId, list[_Box]] = {}
    for sheet in counts.sheets():
        if len(sheet.map_id) == 1 and sheet.map_id[0] in counts.offsets:
            x, y = counts.offsets[sheet.map_id[0]]
            rows, columns = np.nonzero(sheet.visits)
            xs = ((columns + sheet.x + x) * side - world.x0) // world.cell_side
            ys = ((rows + sheet.y + y) * side - world.y0) // world.cell_side
            box = (int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1)
            boxes.setdefault(sheet.map_id, []).append(box)
    found: dict[MapId, Room] = {}
    cell = world.cell_side * pixels
    for map_id, own in boxes.items():
        left, top, right, bottom = (n * cell for n in _around(own))
        x = world.x0 * pixels
        y = world.y0 * pixels
        box = (x + left, y + top, x + right, y + bottom)
        found[map_id] = Room(names.get(map_id[0], ""), *box, is_seen=False)
    return found


def _joined_map(
    name: str,
    map_id: MapId | None,
    pictures: Sequence[MapPicture],
    rooms: Sequence[Room],
    layer: PlaceLayer | None,
    pixels: int,
) -> JoinedMap:
    boxes = [_box(picture) for picture in pictures]
    if layer is not None:
        height, width = (pixels * layer.cell_side * n for n in layer.counts.shape)
        x = layer.x0 * pixels
        y = layer.y0 * pixels
        boxes.append((x, y, x + width, y + height))
    return JoinedMap(name, map_id, *_around(boxes), pictures, rooms, layer, pixels)


def _around(boxes: Sequence[_Box]) -> _Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _resized(picture: Image.Image, before: int, now: int) -> Image.Image:
    """Return a picture with `now` instead of `before` pixels of a map on each side of one."""
    if now % before == 0:
        return picture.reduce(now // before) if now > before else picture
    width, height = (-(-n * before // now) for n in picture.size)
    return picture.resize((width, height), Image.Resampling.BOX)


def _cells(first: int, end: int, cell: int) -> slice:
    """Return the cells of which these pixels are, at least one."""
    start = max(0, first // cell)
    return slice(start, max(start + 1, end // cell))


def _box(picture: MapPicture) -> _Box:
    height, width = (n * picture.shrink for n in picture.seen.shape)
    return picture.x, picture.y, picture.x + width, picture.y + height


def _name(map_id: MapId | None, variables: Sequence[str], names: Mapping[int, str]) -> str:
    if map_id is not None and len(map_id) == 1 and map_id[0] in names:
        return names[map_id[0]]
    return layer_name(map_id, variables)
