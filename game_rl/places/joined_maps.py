"""The maps of a game as pictures: screens below, visits above, borders and names of rooms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.places.place_counts import MapId, PlaceCounts
from game_rl.places.place_layers import PlaceLayer, layer_name, layers, readable
from game_rl.places.screen_map import MapPicture, ScreenMap

_UNSEEN = (24, 24, 27)
_DIMMED = 0.55  # brightness of screens, so that visits are seen on them
_VISITS = 0.6  # opacity of visits
_TEXT = (245, 245, 248)
_SHADOW = (16, 16, 18)
_TEXT_HEIGHT = 12


Colours = Callable[[PlaceLayer], NDArray[np.uint8]]
"""Makes the colours of a layer's cells, uint8 [h, w, 4] RGBA."""


@dataclass(frozen=True)
class Room:
    """A map that lies in the world beside others: its name and its pixels."""

    name: str
    left: int
    top: int
    right: int
    bottom: int


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
        for picture in self.pictures:
            alpha = np.where(picture.seen, 255, 0).astype(np.uint8)[..., None]
            pixels = (picture.pixels * brightness).astype(np.uint8)
            own = Image.fromarray(np.concatenate((pixels, alpha), axis=-1))
            own = own.reduce(shrink) if shrink > 1 else own
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
            found.paste(visits, mask=visits.getchannel("A").point(lambda a: round(a * _VISITS)))
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
        kept: list[int] = []
        for number, picture in enumerate(self.pictures):
            left, top, right, bottom = _box(picture)
            rows = slice(*(max(0, n // cell - layer.y0 // layer.cell_side) for n in (top, bottom)))
            columns = slice(
                *(max(0, n // cell - layer.x0 // layer.cell_side) for n in (left, right))
            )
            if (layer.found[rows, columns] <= timestep).any():
                kept.append(number)
        rooms = [self.rooms[number] for number in kept] if self.rooms else ()
        pictures = [self.pictures[number] for number in kept]
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
            draw.rectangle((left, top, right - 1, bottom - 1), outline=_SHADOW)
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
) -> list[JoinedMap]:
    """Return all maps that were seen or visited, the world first.

    Args:
        pixels: pixels that a step of x or y is.
        names: names of maps.
        side: places on each side of a unit of the counts.
    """
    visited = {layer.map_id: layer.in_places(side) for layer in readable(layers(counts))}
    seen: dict[MapId | None, list[tuple[MapId, MapPicture]]] = {}
    for map_id in joined.maps():
        picture = joined.picture(map_id)
        key: MapId | None = map_id
        if len(map_id) == 1 and map_id[0] in counts.offsets:
            key = None
            x, y = counts.offsets[map_id[0]]
            unit = pixels * side
            picture = picture._replace(x=picture.x + x * unit, y=picture.y + y * unit)
        seen.setdefault(key, []).append((map_id, picture))
    keys = sorted({*visited, *seen}, key=lambda key: (key is not None, key or ()))
    return [
        _joined_map(key, visited.get(key), seen.get(key, ()), counts.names, pixels, names)
        for key in keys
    ]


def _joined_map(
    map_id: MapId | None,
    layer: PlaceLayer | None,
    seen: Sequence[tuple[MapId, MapPicture]],
    variables: Sequence[str],
    pixels: int,
    names: Mapping[int, str],
) -> JoinedMap:
    boxes = [_box(picture) for _, picture in seen]
    if layer is not None:
        height, width = (pixels * layer.cell_side * n for n in layer.counts.shape)
        x = layer.x0 * pixels
        y = layer.y0 * pixels
        boxes.append((x, y, x + width, y + height))
    rooms: list[Room] = []
    if map_id is None:
        rooms = [Room(names.get(of[0], ""), *_box(picture)) for of, picture in seen]
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return JoinedMap(
        _name(map_id, variables, names),
        map_id,
        min(lefts),
        min(tops),
        max(rights),
        max(bottoms),
        [picture for _, picture in seen],
        rooms,
        layer,
        pixels,
    )


def _box(picture: MapPicture) -> tuple[int, int, int, int]:
    height, width = picture.seen.shape
    return picture.x, picture.y, picture.x + width, picture.y + height


def _name(map_id: MapId | None, variables: Sequence[str], names: Mapping[int, str]) -> str:
    if map_id is not None and len(map_id) == 1 and map_id[0] in names:
        return names[map_id[0]]
    return layer_name(map_id, variables)
