"""Cut all pictures of the game into tiles, and write art.c and art.h to the given folder."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

from canvas import Picture, blank
from figures import EMBLEMS, FIGURES, emblem, key, read
from font import FONT, glyph
from rooms import (
    CREATURES,
    DOORS,
    HEART,
    HEIGHT,
    KEYS,
    MOST_CREATURES,
    PARTS,
    ROOMS_IN_A_PART,
    SOLID,
    WIDTH,
    read_rooms,
)
from scenery import decoration, door, floor, lamp, obstacle, spikes, wall, water
from tiles import TileBank, c_array, cut
from title import title

BYTES = "const uint8_t"
WHITE, LIGHT, DARK, BLACK = range(4)
SPIKES_KIND, LAMP_KIND, DOOR_KIND, SOLID_KIND = 1, 0xC0, 0xA0, 0x80  # room.h has the same


class Art:
    """The C source and header written so far."""

    def __init__(self) -> None:
        self.source = ['#include "art.h"\n']
        self.header = ["#pragma once\n#include <stdint.h>\n"]

    def array(self, name: str, values: list[int]) -> None:
        self.source.append(c_array(BYTES, name, values))
        self.header.append(f"extern {BYTES} {name}[];\n")

    def define(self, name: str, value: int) -> None:
        self.header.append(f"#define {name} {value}\n")

    def tiles(self, name: str, bank: TileBank, limit: int) -> None:
        if len(bank.numbers) > limit:
            raise SystemExit(f"{name}: {len(bank.numbers)} tiles, and there is room for {limit}")
        self.array(name, bank.bytes())
        self.define(f"{name}_size", len(bank.bytes()))

    def write(self, folder: Path) -> None:
        (folder / "art.c").write_text("".join(self.source), encoding="utf-8")
        (folder / "art.h").write_text("".join(self.header), encoding="utf-8")


def quarters(bank: TileBank, picture: Picture) -> list[int]:
    return [bank.number(cut(picture, x, y, 8)) for y in (0, 8) for x in (0, 8)]


class Cells:
    """The distinct cells: four tiles and the kind of each, which the game's rules use."""

    def __init__(self, bank: TileBank) -> None:
        self.bank = bank
        self.tiles: list[int] = []
        self.kinds: list[int] = []
        self.numbers: dict[tuple[tuple[int, ...], int], int] = {}

    def number(self, picture: Picture, kind: int) -> int:
        tiles = quarters(self.bank, picture)
        cell = (tuple(tiles), kind)
        if cell not in self.numbers:
            self.numbers[cell] = len(self.kinds)
            self.tiles += tiles
            self.kinds.append(kind)
        return self.numbers[cell]


def cell_picture(room: list[str], x: int, y: int, theme: str) -> tuple[Picture, int]:
    letter = room[y][x]
    if letter in DOORS:
        return door(int(letter) - 1), DOOR_KIND + int(letter) - 1
    if letter == "L":
        return lamp(lit=False), LAMP_KIND
    if letter == "^":
        return spikes(0), SPIKES_KIND
    if letter == "#":
        below = room[y + 1][x] if y + 1 < HEIGHT else "#"
        return wall(theme, foot=below not in "#" + DOORS), SOLID_KIND
    if letter == "~":
        return water(theme, foot=y > 0 and room[y - 1][x] == "~"), SOLID_KIND
    if letter == "o":
        return obstacle(theme), SOLID_KIND
    if letter in SOLID:
        raise SystemExit(f"there is no picture for the letter {letter}; add one to cell_picture")
    return (decoration(theme) if letter == "," else floor(theme)), 0


def first(room: list[str], letters: str) -> tuple[int, int, int] | None:
    """Return the index of the first letter in the room, and its cell's middle on the screen."""
    for y, row in enumerate(room):
        for x, letter in enumerate(row):
            if letter in letters:
                return letters.index(letter), 16 * x + 8, 16 * y + 24
    return None


def items_of(rooms: list[list[str]]) -> list[int]:
    """Return for each room its item (key from 1, heart from 7, 0 for none) and its x and y."""
    items, hearts = [], 0
    for room in rooms:
        item = [0, 0, 0]
        if found := first(room, KEYS):
            item = [found[0] + 1, *found[1:]]
        elif found := first(room, HEART):
            item = [len(KEYS) + 1 + hearts, *found[1:]]
            hearts += 1
        items += item
    return items


def creatures_of(room: list[str]) -> list[int]:
    """Return kind (from 1, or 0 for none), x and y of the room's three creatures."""
    found = [
        (CREATURES.index(letter) + 1, 16 * x + 8, 16 * y + 24)
        for y, row in enumerate(room)
        for x, letter in enumerate(row)
        if letter in CREATURES
    ]
    return [*chain.from_iterable(found), *[0] * (3 * (MOST_CREATURES - len(found)))]


def map_of_rooms(art: Art, bank: TileBank) -> None:
    rooms = read_rooms()
    cells = Cells(bank)
    art.array("part_floors", [cells.number(floor(theme), 0) for theme in PARTS])
    visual = [
        cells.number(*cell_picture(room, x, y, PARTS[number // ROOMS_IN_A_PART]))
        for number, room in enumerate(rooms)
        for y in range(HEIGHT)
        for x in range(WIDTH)
    ]
    art.array("room_cells", visual)
    art.array("room_items", items_of(rooms))
    art.array("room_creatures", list(chain.from_iterable(map(creatures_of, rooms))))
    art.array("lit_lamp", quarters(bank, lamp(lit=True)))
    art.array("cell_kinds", cells.kinds)
    art.array("cell_tiles", cells.tiles)


def icon(rows: list[list[bool]], shade: int) -> Picture:
    tile = blank(8, 8, BLACK)
    for y, row in enumerate(rows):
        for x, on in enumerate(row):
            if on:
                tile[y][x] = shade
    return tile


def small_heart(shade: int) -> Picture:
    rows = ".##.##. ####### ####### ####### .#####. ..###.. ...#..."
    return icon([[c == "#" for c in row] for row in rows.split()], shade)


def gauge(filled: int) -> Picture:
    """Draw eight columns of the lantern's gauge, `filled` of them full."""
    tile = blank(8, 8, BLACK)
    for y in range(1, 6):
        for x in range(8):
            tile[y][x] = WHITE if x < filled else DARK
    return tile


def signs(art: Art, bank: TileBank) -> None:
    """Add letters and the signs of the top rows, white on black."""

    def single(picture: Picture) -> int:
        return bank.number(cut(picture, 0, 0, 8))

    for letter in FONT:
        number = single(glyph(letter, WHITE, BLACK))
        if letter in "0A!.?>":
            word = {"!": "BANG", ".": "DOT", "?": "QUERY", ">": "CURSOR"}.get(letter, letter)
            art.define(f"TILE_{word}", number)
    art.define("TILE_BLANK", single(blank(8, 8, BLACK)))
    art.define("TILE_HEART", single(small_heart(WHITE)))
    art.define("TILE_NO_HEART", single(small_heart(DARK)))
    art.array("gauge_tiles", [single(gauge(filled)) for filled in range(9)])
    for name, shade in (("held", WHITE), ("open", DARK)):
        numbers = [single(icon(emblem(i), shade)) for i in range(len(EMBLEMS))]
        art.array(f"{name}_emblems", numbers)


def sprite_tiles(art: Art) -> None:
    """Add all sprites one after another: figures of 16 x 16, then keys of 8 x 16."""
    rows: list[int] = []
    count = 0
    for name, drawing in FIGURES.items():
        art.define(f"FIGURE_{name}", count)
        rows += columns(read(drawing), (0, 8))
        count += 4
    art.define("FIRST_KEY", count)
    for number in range(len(EMBLEMS)):
        rows += columns(key(number), (0,))
        count += 2
    if count > 128:
        raise SystemExit(f"{count} sprite tiles, and there is room for 128")
    art.array("sprite_tiles", rows)
    art.define("sprite_tiles_size", len(rows))


def columns(picture: Picture, lefts: tuple[int, ...]) -> list[int]:
    """Return the bytes of 8 x 16 pieces, two tiles each; equal tiles are not merged."""
    found: list[int] = []
    for left in lefts:
        for top in (0, 8):
            bank = TileBank()
            bank.number(cut(picture, left, top, 8))
            found += bank.bytes()
    return found


def title_pictures(art: Art) -> None:
    bank = TileBank()
    for letter in FONT:
        bank.number(cut(glyph(letter, WHITE, BLACK), 0, 0, 8))
    bank.number(cut(blank(8, 8, BLACK), 0, 0, 8))  # texts then have the same tiles as in the game
    for name, lit in (("dark", False), ("lit", True)):
        picture = title(lit=lit)
        places = [(x, y) for y in range(0, 144, 8) for x in range(0, 160, 8)]
        art.array(f"{name}_title", [bank.number(cut(picture, x, y, 8)) for x, y in places])
    art.tiles("title_tiles", bank, 256)


def spike_plates(art: Art, bank: TileBank) -> None:
    """Add three stages of spikes; tiles are copied in pairs, so they begin at an even number."""
    if len(bank.numbers) % 2:
        bank.number(cut(blank(8, 8, LIGHT), 0, 0, 8))
    place = len(bank.numbers)
    plates = [TileBank() for _ in range(3)]
    for stage, plate in enumerate(plates):
        quarters(plate, spikes(stage))
    is_whole = quarters(bank, spikes(0)) == [place, place + 1, place + 2, place + 3]
    if not is_whole or {len(plate.numbers) for plate in plates} != {4}:
        raise SystemExit("the four quarters of a plate of spikes must differ")
    art.define("TILE_SPIKES", place)
    art.array("spike_tiles", [byte for plate in plates for byte in plate.bytes()])


def main(folder: Path) -> None:
    art, bank = Art(), TileBank()
    signs(art, bank)
    spike_plates(art, bank)
    map_of_rooms(art, bank)
    art.tiles("background_tiles", bank, 256)
    sprite_tiles(art)
    title_pictures(art)
    art.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
