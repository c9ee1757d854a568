"""The road's pictures, 128 pixels high, in shades from 0 (white) to 3 (black)."""

from __future__ import annotations

from canvas import Picture, blank, paint
from figures import framed, moon, sun

HEIGHT = 128
WHITE, LIGHT, DARK, BLACK = range(4)
GROUND_Y = 96  # the grass begins
ROAD_Y, ROAD_END_Y = 104, 120
BLOCK = 64  # pixels of a stretch of the road
GATES = 144  # pixels of its end


def block(picture: Picture, left: int, top: int, right: int, bottom: int, shade: int) -> None:
    """Fill the rectangle, including its last column and row."""
    for y in range(top, bottom + 1):
        for x in range(left, right + 1):
            picture[y][x] = shade


def ground(width: int) -> Picture:
    """Draw grass and the road below a white sky, the same in every 16 pixels."""
    picture = blank(width, HEIGHT, WHITE)
    block(picture, 0, GROUND_Y, width - 1, HEIGHT - 1, LIGHT)
    block(picture, 0, GROUND_Y, width - 1, GROUND_Y, BLACK)
    block(picture, 0, ROAD_Y, width - 1, ROAD_END_Y - 1, WHITE)
    for y in (ROAD_Y, ROAD_END_Y - 1):
        block(picture, 0, y, width - 1, y, DARK)
    block(picture, 0, ROAD_END_Y + 2, width - 1, HEIGHT - 1, DARK)
    for x in range(width):
        if x % 16 in (2, 4, 11):
            block(picture, x, GROUND_Y + 2, x, GROUND_Y + 4 + x % 2, DARK)
        if x % 8 in (3, 4):
            picture[ROAD_END_Y + 2][x] = LIGHT
        for place, y in ((3, 109), (4, 109), (12, 115)):
            if x % 16 == place:
                picture[y][x] = LIGHT
    return picture


def hills(picture: Picture) -> None:
    """Draw the same far hills in every 64 pixels."""
    for x in range(len(picture[0])):
        at = x % BLOCK
        rise = max(20 - (at - 20) ** 2 // 20, 14 - (at - 50) ** 2 // 14, 4)
        block(picture, x, GROUND_Y - rise, x, GROUND_Y - 1, LIGHT)
        picture[GROUND_Y - rise][x] = DARK


def cloud(picture: Picture, left: int, top: int) -> None:
    path = [(left + 6, top + 9), (left + 25, top + 9)]
    paint(picture, path, 4 * 22, LIGHT, outline=DARK)
    for x, y, size in ((12, 6, 20), (20, 5, 24)):
        paint(picture, [(left + x, top + y)], 4 * size, LIGHT, outline=LIGHT)
    paint(picture, path, 4 * 12, WHITE, outline=WHITE)
    for x, y, size in ((12, 6, 12), (20, 5, 16)):
        paint(picture, [(left + x, top + y)], 4 * size, WHITE, outline=WHITE)


def meadow() -> Picture:
    picture = ground(BLOCK)
    hills(picture)
    cloud(picture, 16, 16)
    return picture


def oak() -> Picture:
    picture = ground(BLOCK)
    hills(picture)
    block(picture, 29, 70, 36, 97, BLACK)
    block(picture, 30, 70, 34, 97, DARK)
    paint(picture, [(22, 62), (44, 62)], 4 * 170, DARK)
    paint(picture, [(32, 50)], 4 * 230, DARK)
    paint(picture, [(22, 62), (44, 62)], 4 * 150, DARK, outline=DARK)
    for x, y in ((26, 44), (36, 50), (18, 58), (28, 64), (44, 60), (38, 38), (50, 66)):
        block(picture, x, y, x + 2, y, LIGHT)
        picture[y - 1][x + 1] = LIGHT
    return picture


def pines() -> Picture:
    picture = ground(BLOCK)
    for left in (4, 36):
        block(picture, left + 10, 90, left + 13, 98, BLACK)
        for top, half in ((40, 7), (54, 9), (70, 11)):
            for y in range(top, top + 22):
                wide = (y - top) * half // 21
                block(picture, left + 11 - wide, y, left + 12 + wide, y, DARK)
                picture[y][left + 11 - wide] = picture[y][left + 12 + wide] = BLACK
            block(picture, left + 11 - half, top + 21, left + 12 + half, top + 21, BLACK)
            block(picture, left + 9, top + 8, left + 9, top + 14, LIGHT)
    return picture


def house() -> Picture:
    picture = ground(BLOCK)
    hills(picture)
    block(picture, 12, 68, 51, 97, BLACK)
    block(picture, 13, 68, 50, 96, WHITE)
    for y in range(48, 69):
        block(picture, 30 - (y - 44), y, 33 + (y - 44), y, DARK if y % 4 else BLACK)
        picture[y][30 - (y - 44)] = picture[y][33 + (y - 44)] = BLACK
    block(picture, 18, 78, 25, 97, BLACK)
    block(picture, 19, 79, 24, 96, DARK)
    block(picture, 34, 76, 45, 87, BLACK)
    block(picture, 35, 77, 44, 86, LIGHT)
    block(picture, 39, 77, 40, 86, BLACK)
    block(picture, 35, 81, 44, 81, BLACK)
    return picture


def fence() -> Picture:
    picture = ground(BLOCK)
    hills(picture)
    for x in range(0, BLOCK, 16):
        block(picture, x + 6, 84, x + 9, 100, BLACK)
        block(picture, x + 7, 85, x + 8, 100, WHITE)
    for y in (88, 94):
        block(picture, 0, y, BLOCK - 1, y + 2, BLACK)
        block(picture, 0, y + 1, BLOCK - 1, y + 1, WHITE)
    return picture


BLOCKS = (meadow, oak, pines, house, fence)
ORDER = (0, 1, 4, 4, 3, 0, 2, 2, 1, 0, 2, 4, 3, 1, 2, 2)  # then again from the first


def plain() -> Picture:
    """Draw one column without hills, which fills up a road to whole blocks."""
    return ground(8)


def inn() -> Picture:
    """Draw the first 16 columns: the inn, with a closed window where the sign will be seen."""
    picture = ground(128)
    block(picture, 8, 24, 103, 97, BLACK)
    block(picture, 9, 24, 102, 96, WHITE)
    for y in range(2, 26):
        left, right = 12 - (y - 2) // 2, 99 + (y - 2) // 2
        block(picture, left, y, right, y, DARK if y % 6 else BLACK)
        picture[y][left] = picture[y][right] = BLACK
    for x in (8, 30, 80, 101):
        block(picture, x, 26, x + 2, 96, BLACK)
    block(picture, 9, 72, 102, 73, BLACK)
    block(picture, 40, 32, 71, 63, BLACK)  # the window, behind the sign
    for x in range(42, 70):
        block(picture, x, 34, x, 61, DARK if x % 4 else BLACK)
    block(picture, 54, 32, 57, 63, BLACK)
    block(picture, 84, 78, 97, 97, BLACK)
    block(picture, 85, 79, 96, 96, DARK)
    picture[88][94] = WHITE
    block(picture, 14, 80, 26, 90, BLACK)
    block(picture, 15, 81, 25, 89, LIGHT)
    block(picture, 20, 81, 20, 89, BLACK)
    return picture


def gate_arch(picture: Picture, left: int, bottom: int) -> None:
    for y in range(bottom - 24, bottom + 1):
        rise = bottom - 12 - y
        half = 10 if rise <= 0 else 10 - rise * rise // 15
        block(picture, left + 11 - half - 2, y, left + 12 + half + 2, y, WHITE)
        block(picture, left + 11 - half, y, left + 12 + half, y, BLACK)


def gates() -> Picture:
    """Draw the last 18 columns, two of them before the fork: a wall with two gates."""
    picture = ground(GATES)
    for x in range(56, GATES):
        top = 0 if x // 8 % 2 else 8
        block(picture, x, top, x, HEIGHT - 1, LIGHT)
        block(picture, x, top, x, top if x % 8 not in (0, 7) else 8, BLACK)
    for y in range(16, HEIGHT, 8):
        block(picture, 56, y, GATES - 1, y, DARK)
        for x in range(60 if y // 8 % 2 else 68, GATES, 16):
            block(picture, x, y, x, y + 7, DARK)
    block(picture, 56, 8, 56, HEIGHT - 1, BLACK)
    block(picture, 48, 56, GATES - 1, 63, DARK)  # the terrace before the gate above
    block(picture, 48, 56, GATES - 1, 56, BLACK)
    for step in range(7):
        top = 57 + 6 * step
        block(picture, 45 - 3 * step, top, 55, top + 5, DARK)
        block(picture, 45 - 3 * step, top, 55, top, BLACK)
        block(picture, 45 - 3 * step, top, 45 - 3 * step, top + 5, BLACK)
    block(picture, 57, ROAD_Y, GATES - 1, ROAD_END_Y - 1, WHITE)
    for draw, bottom in ((sun, 55), (moon, ROAD_END_Y - 1)):
        gate_arch(picture, 76, bottom)
        for y, row in enumerate(framed(draw(24))):
            for x, ink in enumerate(row):
                picture[bottom - 31 + y][112 + x] = WHITE if ink == LIGHT else ink
    return picture
