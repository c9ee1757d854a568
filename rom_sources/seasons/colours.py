"""Palettes of four colours, each as red, green and blue from 0 to 31."""

from __future__ import annotations

Colour = tuple[int, int, int]
Palette = tuple[Colour, Colour, Colour, Colour]

BLACK, WHITE = (2, 2, 4), (31, 31, 31)
SKY, EARTH, STONE, APPLE, FLAG, BRAMBLE, PAPER = range(7)  # the numbers of background palettes


def season(sky: Colour, far: Colour, grass: Colour, light: Colour, earth: Colour) -> list[Palette]:
    """Return a season's background palettes; colour 0 is the sky in all but PAPER."""
    return [
        (sky, WHITE, far, grass),
        (sky, light, grass, earth),
        (sky, (25, 24, 22), (16, 15, 15), (6, 6, 8)),
        (sky, (31, 24, 20), (28, 4, 5), (9, 2, 2)),
        (sky, WHITE, (30, 20, 3), BLACK),
        (sky, (24, 10, 20), (13, 3, 12), (5, 1, 6)),
        (BLACK, (18, 18, 20), (31, 9, 9), WHITE),
        (sky, WHITE, far, grass),
    ]


SEASONS = (
    season((20, 28, 31), (15, 24, 24), (8, 22, 6), (20, 29, 8), (15, 9, 4)),
    season((12, 22, 31), (10, 20, 26), (4, 17, 5), (12, 25, 6), (17, 11, 5)),
    season((31, 24, 16), (27, 17, 12), (23, 10, 3), (30, 19, 5), (12, 6, 4)),
    season((24, 27, 31), (18, 22, 28), (20, 25, 29), WHITE, (10, 12, 18)),
)
FOX: Palette = (WHITE, WHITE, (30, 14, 3), (6, 2, 1))
SNAIL: Palette = (WHITE, (30, 27, 18), (22, 8, 18), (5, 1, 6))
BEE: Palette = (WHITE, (28, 31, 31), (31, 26, 3), (4, 3, 2))
SPRITES = (FOX, SNAIL, BEE, BEE)


def words(palettes: list[Palette] | tuple[Palette, ...]) -> list[int]:
    """Return the palettes in the console's format: 15 bits a colour, red lowest, low byte first."""
    found = []
    for palette in palettes:
        for red, green, blue in palette:
            word = red | green << 5 | blue << 10
            found += [word & 0xFF, word >> 8]
    return found
