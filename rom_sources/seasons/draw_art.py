"""Cut all pictures of the game into tiles, and write art.c and art.h to the given folder."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

from canvas import Picture, blank, paint
from colours import PAPER, SEASONS, SKY, SPRITES, words
from figures import FIGURES, read
from font import FONT, glyph
from levels import CREATURES, HEIGHT, read_levels
from scenery import AIR, CELLS, cloud, hill
from tiles import TileBank, c_array, cut

BYTES = "const uint8_t"
SOLID_KIND, APPLE_KIND, BRAMBLE_KIND = 0x80, 1, 2  # level.h has the same
KINDS = {"#": SOLID_KIND, "=": SOLID_KIND, "T": SOLID_KIND, "a": APPLE_KIND, "^": BRAMBLE_KIND}
CLOUD_ROW, HILL_ROW = 1, 5


class Art:
    """The C source and header written so far."""

    def __init__(self) -> None:
        self.source = ['#include "art.h"\n']
        self.header = ["#pragma once\n#include <stdint.h>\n"]

    def array(self, name: str, values: list[int]) -> None:
        self.source.append(c_array(BYTES, name, values))
        self.header.append(f"extern {BYTES} {name}[];\n")

    def pointers(self, name: str, targets: list[str]) -> None:
        self.source.append(c_array(f"{BYTES} *const", name, targets))
        self.header.append(f"extern {BYTES} *const {name}[];\n")

    def define(self, name: str, value: int) -> None:
        self.header.append(f"#define {name} {value}\n")

    def tiles(self, name: str, values: list[int], limit: int) -> None:
        if len(values) > 16 * limit:
            raise SystemExit(f"{name}: {len(values) // 16} tiles, and there is room for {limit}")
        self.array(name, values)
        self.define(f"{name}_size", len(values))

    def write(self, folder: Path) -> None:
        (folder / "art.c").write_text("".join(self.source), encoding="utf-8")
        (folder / "art.h").write_text("".join(self.header), encoding="utf-8")


class Cells:
    """The distinct cells: tiles, palette and kind of each."""

    def __init__(self, bank: TileBank) -> None:
        self.bank = bank
        self.tiles: list[int] = []
        self.palettes: list[int] = []
        self.kinds: list[int] = []
        self.numbers: dict[tuple[tuple[int, ...], int, int], int] = {}

    def number(self, picture: Picture, palette: int, kind: int) -> int:
        places = ((0, 0), (0, 8), (8, 0), (8, 8))  # the left column, then the right one
        tiles = tuple(self.bank.number(cut(picture, x, y, 8)) for x, y in places)
        cell = (tiles, palette, kind)
        if cell not in self.numbers:
            self.numbers[cell] = len(self.kinds)
            self.tiles += tiles
            self.palettes.append(palette)
            self.kinds.append(kind)
        return self.numbers[cell]


def backdrop(column: int, row: int) -> Picture:
    """Return a cell of the sky with clouds and distant hills, the same in every level."""
    if row == CLOUD_ROW + column % 3 % 2 and column % 7 in (2, 5):
        return cloud()
    peak = column % 9
    if row == 6 and peak in (3, 4, 5):
        return hill(top=peak != 4)
    if row == HILL_ROW and peak == 4:
        return hill(top=True)
    return blank(16, 16, 0)


def level_cells(cells: Cells, rows: list[str]) -> list[int]:
    """Return the level's cell numbers, column by column, each from top to bottom."""
    found = []
    for x in range(len(rows[0])):
        for y in range(HEIGHT):
            letter = rows[y][x]
            if letter in AIR:
                found.append(cells.number(backdrop(x, y), SKY, 0))
            else:
                draw, palette = CELLS[letter]
                found.append(cells.number(draw(), palette, KINDS.get(letter, 0)))
    return found


def level_creatures(rows: list[str]) -> list[int]:
    """Return (kind, column, row) of creatures from left to right; column 255 ends the list."""
    found = [
        (CREATURES.index(rows[y][x]) + 1, x, y)
        for x in range(len(rows[0]))
        for y in range(HEIGHT)
        if rows[y][x] in CREATURES
    ]
    return [*chain.from_iterable(found), 0, 255, 0]


def levels(art: Art, bank: TileBank) -> None:
    cells = Cells(bank)
    air = cells.number(blank(16, 16, 0), SKY, 0)
    art.define("CELL_AIR", air)
    names = []
    for number, rows in enumerate(read_levels()):
        art.array(f"level_{number}_cells", level_cells(cells, rows))
        art.array(f"level_{number}_creatures", level_creatures(rows))
        names.append(f"level_{number}")
    art.pointers("level_cells", [f"{name}_cells" for name in names])
    art.pointers("level_creatures", [f"{name}_creatures" for name in names])
    art.array("level_columns", [len(rows[0]) for rows in read_levels()])
    art.array("cell_tiles", cells.tiles)
    art.array("cell_palettes", cells.palettes)
    art.array("cell_kinds", cells.kinds)


def icon(rows: str, shade: int) -> Picture:
    tile = blank(8, 8, 0)
    for y, row in enumerate(rows.split()):
        for x, letter in enumerate(row):
            if letter == "#":
                tile[y][x] = shade
    return tile


def signs(bank: TileBank) -> dict[str, int]:
    """Add letters and the signs of the status row, on black, as the first tiles of a bank."""
    words = {"!": "BANG", ".": "DOT", ">": "CURSOR", "0": "0", "A": "A"}
    heart = ".##.##. ####### ####### ####### .#####. ..###.. ...#..."
    fruit = "...#... ..#.... .##.##. ####### ####### .#####. ..#.#.."
    numbers = {}
    for letter in FONT:
        number = bank.number(cut(glyph(letter, 3, 0), 0, 0, 8))
        if letter in words:
            numbers[words[letter]] = number
    for name, rows, shade in (("HEART", heart, 2), ("NO_HEART", heart, 1), ("APPLE", fruit, 2)):
        numbers[name] = bank.number(cut(icon(rows, shade), 0, 0, 8))
    numbers["BLANK"] = bank.number(cut(blank(8, 8, 0), 0, 0, 8))
    return numbers


def title() -> Picture:
    """Draw SEASONS in large letters over hills; all tiles use the palette of the sky."""
    picture = blank(160, 144, 0)
    for centre, height, half in ((30, 34, 60), (125, 44, 70), (80, 24, 60)):
        for x in range(160):
            rise = height - (x - centre) * (x - centre) * height // (half * half)
            for y in range(max(112 - rise, 70), 112):
                picture[y][x] = 2
    for y in range(108, 144):
        for x in range(160):
            picture[y][x] = 3
    for x, y, r in ((24, 66, 7), (34, 64, 9), (44, 67, 6), (120, 58, 6), (130, 56, 8)):
        paint(picture, [(x, y)], 4 * r * r // 2, 1, outline=1)
    for index, letter in enumerate("SEASONS"):
        for y, row in enumerate(FONT[letter].split()):
            for x, bit in enumerate(row):
                if bit == "1":
                    for i in range(16):
                        px, py = 4 + 22 * index + 4 * x + i % 4, 18 + 4 * y + i // 4
                        picture[py][px] = 1 if y < 4 else 3
    return picture


def title_picture(art: Art) -> None:
    bank = TileBank()
    signs(bank)
    picture = title()
    places = [(x, y) for y in range(0, 144, 8) for x in range(0, 160, 8)]
    art.array("title_map", [bank.number(cut(picture, x, y, 8)) for x, y in places])
    art.tiles("title_tiles", bank.bytes(), 256)


def sprites(art: Art) -> None:
    values: list[int] = []
    for name, drawing in FIGURES.items():
        art.define(f"FIGURE_{name}", len(values) // 16)
        picture = read(drawing)
        for left in (0, 8):
            for top in (0, 8):
                tile = TileBank()
                tile.number(cut(picture, left, top, 8))
                values += tile.bytes()
    art.tiles("sprite_tiles", values, 128)
    art.array("sprite_palettes", words(SPRITES))


def main(folder: Path) -> None:
    art, bank = Art(), TileBank()
    for name, number in signs(bank).items():
        art.define(f"TILE_{name}", number)
    levels(art, bank)
    art.tiles("background_tiles", bank.bytes(), 256)
    title_picture(art)
    sprites(art)
    art.array("season_palettes", list(chain.from_iterable(map(words, SEASONS))))
    art.define("PAPER", PAPER)
    art.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
