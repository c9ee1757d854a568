"""Cut all pictures of the game into tiles, and write art.c and art.h to the given folder."""

from __future__ import annotations

import sys
from pathlib import Path

from backgrounds import SKY, bar, marker, stage, title
from canvas import Picture, blank
from fighters import (
    BUFFER_SPRITES,
    CENTRE,
    POSES,
    RESIDENT,
    SPARKS,
    WIDTH,
    draw_kite,
    draw_rook,
)
from font import FONT, glyph
from tiles import TileBank, c_array, cut, figure, shifted


def fewest_sprites(picture: Picture, left: int) -> tuple[TileBank, list[int]]:
    """Shift the figure on the column grid to need the fewest sprites; return its bank and data."""
    found = []
    for columns in range(8):
        bank = TileBank()
        found.append((bank, figure(bank, shifted(picture, columns), left + columns)))
    return min(found, key=lambda pair: len(pair[1]))


def main(folder: Path) -> None:
    sprites, tiles = TileBank(), TileBank()
    source, header = ['#include "art.h"\n'], ["#pragma once\n#include <stdint.h>\n"]
    for owner, draw, mirrored in (("player", draw_kite, False), ("opponent", draw_rook, True)):
        figures, pictures = [], []
        for name, joints in POSES.items():
            picture = [row[::-1] for row in draw(joints)] if mirrored else draw(joints)
            left = WIDTH - 1 - CENTRE if mirrored else CENTRE
            if name in RESIDENT:
                parts = figure(sprites, shifted(picture, 4), left + 4)
                pictures.append("0")
            else:
                bank, parts = fewest_sprites(picture, left)
                if len(bank.numbers) > BUFFER_SPRITES:
                    raise SystemExit(
                        f"{owner}, {name}: {len(bank.numbers)} sprites, over {BUFFER_SPRITES}"
                    )
                source.append(
                    c_array("static const uint8_t", f"{owner}_{name}_tiles", bank.bytes())
                )
                pictures.append(f"{owner}_{name}_tiles")
            source.append(c_array("static const uint8_t", f"{owner}_{name}", parts))
            figures.append(f"{owner}_{name}")
        source.append(c_array("const uint8_t *const", f"{owner}_figures", figures))
        source.append(c_array("const uint8_t *const", f"{owner}_pictures", pictures))
        header.append(f"extern const uint8_t *const {owner}_figures[];\n")
        header.append(f"extern const uint8_t *const {owner}_pictures[];\n")
    header += [f"#define POSE_{name} {number}\n" for number, name in enumerate(POSES)]
    header.append(f"#define BUFFER_SPRITES {BUFFER_SPRITES}\n")
    for name, rows in SPARKS.items():
        picture = [[0 if c == "." else int(c) for c in row] for row in rows]
        source.append(c_array("const uint8_t", f"spark_{name}", figure(sprites, picture, 8)))
        header.append(f"extern const uint8_t spark_{name}[];\n")

    def add(name: str, tile: Picture) -> None:
        header.append(f"#define TILE_{name} {tiles.number(cut(tile, 0, 0, 8))}\n")

    for place, letter in enumerate(FONT):
        number = tiles.number(cut(glyph(letter), 0, 0, 8))
        if number != place:
            raise SystemExit(f"the letter {letter} looks like another one")
        if letter in "0A":
            header.append(f"#define TILE_{letter} {number}\n")
    for word, sign in (("BANG", "!"), ("DOT", "."), ("QUERY", "?"), ("CURSOR", ">")):
        header.append(f"#define TILE_{word} {list(FONT).index(sign)}\n")
    add("SKY", blank(8, 8, SKY))
    add("MARKER_OPEN", marker(won=False))
    add("MARKER_WON", marker(won=True))
    for side, mirrored in (("LEFT", False), ("RIGHT", True)):
        numbers = [
            tiles.number(cut(bar(filled, mirrored=mirrored), 0, 0, 8)) for filled in range(9)
        ]
        source.append(c_array("const uint8_t", f"bar_{side}", numbers))
        header.append(f"extern const uint8_t bar_{side}[];\n")
    for name, picture in (("stage", stage()), ("title", title())):
        cells = [
            tiles.number(cut(picture, x, y, 8)) for y in range(0, 144, 8) for x in range(0, 160, 8)
        ]
        source.append(c_array("const uint8_t", f"{name}_map", cells))
        header.append(f"extern const uint8_t {name}_map[];\n")
    for name, bank, limit in (
        ("sprite_tiles", sprites, 128 - 4 * BUFFER_SPRITES),
        ("background_tiles", tiles, 128),
    ):
        if len(bank.numbers) > limit:
            raise SystemExit(f"{name}: {len(bank.numbers)} tiles, and there is room for {limit}")
        source.append(c_array("const uint8_t", name, bank.bytes()))
        header.append(f"extern const uint8_t {name}[];\n#define {name}_size {len(bank.bytes())}\n")
    (folder / "art.c").write_text("".join(source), encoding="utf-8")
    (folder / "art.h").write_text("".join(header), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
