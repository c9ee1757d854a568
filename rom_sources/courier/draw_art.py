"""Cut all pictures of the game into tiles, and write art.c and art.h to the given folder."""

from __future__ import annotations

import sys
from pathlib import Path

from canvas import Picture, blank
from figures import FIGURES, SIGN, framed, moon, read, sun
from font import glyph
from scenery import BLACK, BLOCKS, DARK, HEIGHT, ORDER, WHITE, gates, inn, plain
from tiles import TileBank, c_array, cut
from title import title

BYTES = "const uint8_t"
COLUMNS = 20
TITLE_TEXTS = {
    "start": "PRESS START",
    "lane": "> LANE 25",
    "road": "> ROAD 100",
    "valley": "> VALLEY 300",
    "pass": "> PASS 1000",
}
PLAY_TEXTS = {
    "empty": "",
    "read": "READ THE SIGN",
    "fork": "UP OR DOWN?",
    "won": "HOME AT LAST!",
    "lost": "NOT THIS GATE...",
}


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

    def tiles(self, name: str, values: list[int], limit: int) -> None:
        if len(values) > 16 * limit:
            raise SystemExit(f"{name}: {len(values) // 16} tiles, and there is room for {limit}")
        self.array(name, values)
        self.define(f"{name}_size", len(values))

    def write(self, folder: Path) -> None:
        (folder / "art.c").write_text("".join(self.source), encoding="utf-8")
        (folder / "art.h").write_text("".join(self.header), encoding="utf-8")


def text_row(bank: TileBank, text: str) -> list[int]:
    """Return the 20 tiles of a row with the text in its middle, white on black."""
    empty = bank.number(cut(blank(8, 8, BLACK), 0, 0, 8))
    row = [
        empty if letter == " " else bank.number(cut(glyph(letter, WHITE, BLACK), 0, 0, 8))
        for letter in text
    ]
    left = (COLUMNS - len(row)) // 2
    return [*[empty] * left, *row, *[empty] * (COLUMNS - left - len(row))]


def texts(art: Art, bank: TileBank, rows: dict[str, str]) -> None:
    for name, text in rows.items():
        art.array(f"text_{name}", text_row(bank, text))


def bar(filled: int) -> Picture:
    """Draw a tile of the bar that shows how far the road still is."""
    tile = blank(8, 8, BLACK)
    for y in range(2, 6):
        for x in range(8):
            tile[y][x] = WHITE if filled else DARK
    return tile


def milestone() -> Picture:
    """Draw a stone; a road has one to four of them, the longer the more."""
    tile = blank(8, 8, BLACK)
    for y in range(1, 6):
        for x in range(1 if y > 1 else 2, 6 if y > 1 else 5):
            tile[y][x] = WHITE
    return tile


def columns(bank: TileBank, picture: Picture) -> list[int]:
    """Return the tiles of a picture of the road, column by column, each from top to bottom."""
    places = [(x, y) for x in range(0, len(picture[0]), 8) for y in range(0, HEIGHT, 8)]
    return [bank.number(cut(picture, x, y, 8)) for x, y in places]


def road(art: Art, bank: TileBank) -> None:
    art.array("inn_tiles", columns(bank, inn()))
    art.array("gates_tiles", columns(bank, gates()))
    art.array("plain_tiles", columns(bank, plain()))
    art.array("block_tiles", [tile for draw in BLOCKS for tile in columns(bank, draw())])
    art.array("block_order", list(ORDER))
    art.define("BLOCK_ORDER", len(ORDER))
    mark = bank.number(cut(milestone(), 0, 0, 8))
    art.array("text_marks", [mark] * 4)
    for name, filled in (("TILE_BAR", 0), ("TILE_BAR_FULL", 1)):
        art.define(name, bank.number(cut(bar(filled), 0, 0, 8)))


def sprite_tiles(art: Art) -> None:
    """Add all sprites one after another, in pieces of 8 x 16."""
    rows: list[int] = []
    pictures = {name: read(drawing) for name, drawing in FIGURES.items()}
    pictures |= {"SUN": framed(sun(SIGN)), "MOON": framed(moon(SIGN))}
    for name, picture in pictures.items():
        art.define(f"FIGURE_{name}", len(rows) // 16)
        for top in range(0, len(picture), 16):
            for left in range(0, len(picture[0]), 8):
                for half in (0, 8):  # equal tiles are not merged
                    piece = TileBank()
                    piece.number(cut(picture, left, top + half, 8))
                    rows += piece.bytes()
    art.tiles("sprite_tiles", rows, 128)


def main(folder: Path) -> None:
    art = Art()
    bank = TileBank()
    texts(art, bank, PLAY_TEXTS)
    road(art, bank)
    art.tiles("background_tiles", bank.bytes(), 256)
    bank = TileBank()
    texts(art, bank, TITLE_TEXTS)
    picture = title()
    places = [(x, y) for y in range(0, 144, 8) for x in range(0, 160, 8)]
    art.array("title_map", [bank.number(cut(picture, x, y, 8)) for x, y in places])
    art.tiles("title_tiles", bank.bytes(), 256)
    sprite_tiles(art)
    art.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
