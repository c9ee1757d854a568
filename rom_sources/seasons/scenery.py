"""Pictures of cells, 16 x 16 pixels, in the four colours of a palette of colours.py."""

from __future__ import annotations

from canvas import Picture, blank, paint
from colours import APPLE, BRAMBLE, EARTH, FLAG, SKY, STONE

SIZE = 16


def block(picture: Picture, left: int, top: int, right: int, bottom: int, colour: int) -> None:
    """Fill the rectangle, including its last column and row."""
    for y in range(top, bottom + 1):
        for x in range(left, right + 1):
            picture[y][x] = colour


def ground() -> Picture:
    picture = blank(SIZE, SIZE, 3)
    block(picture, 0, 0, 15, 3, 2)
    block(picture, 0, 0, 15, 0, 1)
    for x in range(SIZE):
        for y in range(4, 5 + (x * 5 % 7) // 2):
            picture[y][x] = 2
    for x, y in ((3, 9), (11, 8), (7, 13), (14, 12), (1, 14)):
        block(picture, x, y, x + 1, y, 2)
    return picture


def stone() -> Picture:
    picture = blank(SIZE, SIZE, 3)
    block(picture, 1, 0, 14, 14, 2)
    block(picture, 1, 0, 14, 1, 1)
    block(picture, 1, 7, 14, 7, 3)
    block(picture, 7, 0, 7, 7, 3)
    block(picture, 11, 8, 11, 14, 3)
    block(picture, 3, 8, 3, 14, 3)
    return picture


def crate() -> Picture:
    picture = blank(SIZE, SIZE, 3)
    block(picture, 1, 1, 14, 14, 2)
    for i in range(1, 15):
        for j in (i, 15 - i):
            picture[i][j] = 3
            picture[i][min(j + 1, 14)] = 1
    for i in range(SIZE):
        picture[i][0] = picture[i][15] = picture[0][i] = picture[15][i] = 3
        if 0 < i < 15:
            picture[1][i] = picture[i][1] = 1
    return picture


def apple() -> Picture:
    picture = blank(SIZE, SIZE, 0)
    paint(picture, [(6, 9), (9, 9)], 70, 2)
    block(picture, 4, 7, 5, 8, 1)
    block(picture, 8, 2, 8, 4, 3)
    block(picture, 9, 2, 11, 2, 3)
    return picture


def brambles() -> Picture:
    """Draw brambles in a pit: the fox does not fall through them but gets hurt."""
    picture = blank(SIZE, SIZE, 3)
    for left in (0, 5, 10):
        for rise in range(8):
            half = (8 - rise) // 3
            block(picture, left + 3 - half, 9 - rise, min(left + 3 + half, 15), 9 - rise, 2)
        picture[3][left + 3] = 1
    block(picture, 0, 0, 15, 1, 0)
    for x in range(SIZE):
        for y in range(2, 8):
            if picture[y][x] == 3:
                picture[y][x] = 0
    return picture


def flag() -> Picture:
    picture = blank(SIZE, SIZE, 0)
    block(picture, 3, 0, 4, 15, 3)
    for y in range(1, 9):
        block(picture, 5, y, 14 - abs(4 - y) // 2, y, 2)
    block(picture, 5, 1, 14, 1, 3)
    block(picture, 5, 9, 13, 9, 3)
    block(picture, 7, 4, 9, 6, 1)
    block(picture, 1, 14, 6, 15, 3)
    return picture


def flower() -> Picture:
    picture = blank(SIZE, SIZE, 0)
    for x, top in ((4, 8), (11, 10)):
        block(picture, x, top + 3, x, 15, 3)
        block(picture, x - 2, top, x + 2, top + 2, 1)
        block(picture, x - 1, top - 1, x + 1, top + 3, 1)
        block(picture, x, top + 1, x, top + 1, 2)
    return picture


def cloud() -> Picture:
    picture = blank(SIZE, SIZE, 0)
    for x, y, r in ((5, 9, 5), (10, 8, 6), (13, 10, 3)):
        paint(picture, [(x, y)], r * r, 1, outline=1)
    return picture


def hill(*, top: bool) -> Picture:
    """Draw a distant hill, one cell wide at the top."""
    picture = blank(SIZE, SIZE, 2)
    if top:
        for x in range(SIZE):
            rise = 2 + (x - 7) * (x - 7) // 5
            block(picture, x, 0, x, min(rise, 15), 0)
    return picture


AIR = ".sb"
CELLS = {
    "#": (ground, EARTH), "=": (stone, STONE), "T": (crate, FLAG), "a": (apple, APPLE),
    "^": (brambles, BRAMBLE), "F": (flag, FLAG), ",": (flower, SKY),
}  # fmt: skip
