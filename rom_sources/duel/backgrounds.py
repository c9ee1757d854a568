"""Health bars, the stage and the title picture."""

from __future__ import annotations

from canvas import Picture, blank, paint
from font import FONT

SKY = 1


def bar(filled: int, *, mirrored: bool) -> Picture:
    """Draw eight columns of a health bar, `filled` of them full."""
    tile = blank(8, 8, 3)
    for y in range(1, 6):
        for x in range(8):
            tile[y][x] = (1 if y == 5 else 0) if x < filled else 3
    tile[7] = [SKY] * 8  # keeps the bar apart from the names
    return [row[::-1] for row in tile] if mirrored else tile


def marker(*, won: bool) -> Picture:
    """Draw the marker of a round: a full disc if it is won, a ring otherwise."""
    tile = blank(8, 8, SKY)
    paint(tile, [(3, 3)], 36, 3 if won else 0)
    return tile


def ground_and_sky() -> Picture:
    """Draw snowy peaks that fade into a light sky, and a dark floor; only light behind fighters."""
    picture = blank(160, 144, SKY)
    for x in range(160):
        ridge = 65 + min(abs(x % 80 - 40) // 2, 4 + abs((x + 28) % 80 - 40) // 4)
        for y in range(ridge, 96):
            depth = y - ridge
            solid = (
                depth < 8
                or (depth < 16 and (x + y) % 2 == 0)
                or (depth < 20 and x % 4 == 0 and y % 4 == 0)
            )
            picture[y][x] = 0 if solid else SKY
    for y in range(120, 144):
        for x in range(160):
            line = y in (121, 128, 137)
            seam = x % 16 == (0 if y < 128 else 8 if y < 137 else 4)
            picture[y][x] = 3 if y == 120 or (y > 121 and (line or seam)) else 2
    return picture


def stage() -> Picture:
    """Draw the gate of the arena: two posts at the walls and a beam between them."""
    picture = ground_and_sky()
    for y in range(24, 32):
        for x in range(160):
            picture[y][x] = 3 if y in (24, 31) else 0 if y == 25 else 2
    for left in (0, 152):
        for y in range(32, 120):
            for x in range(8):
                picture[y][left + x] = 3 if x in (0, 7) or y % 16 == 0 else 0 if x == 1 else 2
    return picture


def title() -> Picture:
    picture = ground_and_sky()
    for index, letter in enumerate("DUEL"):
        for y, row in enumerate(FONT[letter].split()):
            for x, bit in enumerate(row):
                if bit == "1":
                    for i in range(6 * 6):
                        px, py = 5 + 40 * index + 6 * x + i % 6, 8 + 6 * y + i // 6
                        for shift, shade in ((2, 2),):
                            if picture[py + shift][px + shift] != 3:
                                picture[py + shift][px + shift] = shade
                        picture[py][px] = 3
    return picture
