"""Pictures of the map's cells, 16 x 16 pixels, in shades from 0 (white) to 3 (black)."""

from __future__ import annotations

from canvas import Picture, blank, paint
from figures import emblem

SIZE = 16
SHORE, CAVES, LIGHTHOUSE = "SHORE", "CAVES", "LIGHTHOUSE"


def dotted(ground: int, dots: dict[int, list[tuple[int, int]]]) -> Picture:
    picture = blank(SIZE, SIZE, ground)
    for shade, places in dots.items():
        for x, y in places:
            picture[y][x] = shade
    return picture


def block(picture: Picture, left: int, top: int, right: int, bottom: int, shade: int) -> None:
    """Fill the rectangle, including its last column and row."""
    for y in range(top, bottom + 1):
        for x in range(left, right + 1):
            picture[y][x] = shade


# --- floors ---


def floor(theme: str) -> Picture:
    if theme == SHORE:
        return dotted(0, {1: [(3, 4), (12, 2), (9, 10), (2, 13)]})
    if theme == CAVES:
        return dotted(1, {0: [(2, 3), (11, 6), (5, 12)], 2: [(8, 2), (13, 12), (3, 8)]})
    picture = blank(SIZE, SIZE, 0)
    for i in range(SIZE):
        picture[15][i] = 1
        picture[i][15 if i < 8 else 7] = 1
        picture[7][i] = 1
    return picture


def decoration(theme: str) -> Picture:
    """Draw a floor with a decoration that does not block the way."""
    picture = floor(theme)
    if theme == SHORE:  # a tuft of grass
        for x, top in ((4, 8), (6, 5), (8, 7), (10, 5), (12, 9)):
            for y in range(top, 13):
                picture[y][x] = 2
    elif theme == CAVES:  # pebbles
        for x, y in ((4, 9), (9, 11), (10, 5)):
            block(picture, x, y, x + 2, y + 1, 2)
            picture[y][x + 1] = 0
    else:  # a star laid in the floor
        for i in range(5):
            block(picture, 7 - i, 3 + i, 7 + i, 3 + i, 1)
            block(picture, 7 - i, 11 - i, 7 + i, 11 - i, 1)
    return picture


# --- walls; `foot` is the lowest cell of a wall, whose face is visible ---


def tree(*, foot: bool) -> Picture:
    picture = blank(SIZE, SIZE, 0) if foot else blank(SIZE, SIZE, 2)
    if foot:
        paint(picture, [(7, 9), (7, 13)], 10, 2)
    for x, y in ((3, 4), (12, 4), (7, 2)) if foot else ((3, 12), (12, 12), (7, 9), (0, 5), (15, 5)):
        paint(picture, [(x, y)], 100, 2)
    for x, y in ((2, 3), (6, 1), (7, 1), (11, 3), (13, 5), (4, 6)):
        picture[y][x] = 1
    if not foot:
        for x, y in ((6, 7), (2, 10), (11, 10), (14, 13)):
            picture[y][x] = 1
    return picture


def cave_wall(*, foot: bool) -> Picture:
    picture = blank(SIZE, SIZE, 3)
    if not foot:
        for x, y in ((3, 3), (4, 3), (11, 6), (12, 6), (6, 11), (7, 12), (1, 9), (13, 14)):
            picture[y][x] = 2
        return picture
    block(picture, 0, 4, 15, 14, 2)
    for x in range(SIZE):
        picture[4 + (x * 5 // 3) % 3][x] = 3
        picture[15][x] = 3 if x % 5 else 1
    for x, top, bottom in ((3, 7, 13), (8, 9, 14), (12, 6, 11)):
        block(picture, x, top, x, bottom, 3)
        block(picture, x + 1, top, x + 1, bottom - 2, 1)
    return picture


def tower_wall(*, foot: bool) -> Picture:
    picture = blank(SIZE, SIZE, 3)
    if not foot:
        block(picture, 1, 1, 14, 14, 2)
        block(picture, 3, 3, 12, 12, 3)
        return picture
    for course, top in enumerate((1, 6, 11)):
        for left in (0, 8) if course % 2 else (-4, 4, 12):
            block(picture, max(left, 0), top, min(left + 6, 15), top + 3, 2)
            block(picture, max(left, 0), top, min(left + 6, 15), top, 1)
    return picture


def wall(theme: str, *, foot: bool) -> Picture:
    return {SHORE: tree, CAVES: cave_wall, LIGHTHOUSE: tower_wall}[theme](foot=foot)


# --- obstacles ---


def obstacle(theme: str) -> Picture:
    picture = floor(theme)
    if theme == SHORE:  # a boulder
        paint(picture, [(6, 8), (9, 9)], 130, 1)
        block(picture, 4, 5, 6, 5, 0)
        block(picture, 6, 12, 11, 13, 2)
    elif theme == CAVES:  # a stalagmite
        for y in range(1, 14):
            half = y * 6 // 14
            block(picture, 7 - half, y, 8 + half, y, 2)
            picture[y][7 - half] = picture[y][8 + half] = 3
            if half > 1:
                picture[y][8 - half] = 0
        block(picture, 2, 14, 13, 14, 3)
    else:  # a barrel
        block(picture, 3, 1, 12, 14, 3)
        block(picture, 4, 2, 11, 13, 2)
        block(picture, 2, 4, 13, 12, 3)
        block(picture, 3, 4, 12, 12, 2)
        block(picture, 5, 2, 6, 13, 1)
        for y in (4, 11):
            block(picture, 2, y, 13, y, 3)
        block(picture, 4, 2, 11, 2, 0)
    return picture


def water(theme: str, *, foot: bool) -> Picture:
    """Draw water; a `foot` has more water above it, other cells have the shore's edge on top."""
    deep = 3 if theme == CAVES else 2
    picture = blank(SIZE, SIZE, 1 if theme == SHORE else 2)
    for top, start in ((3, 0), (7, 6), (11, 2), (15, 9)):
        for x in range(start, start + 7):
            picture[top - (x - start in (0, 6))][x % SIZE] = deep
    if not foot:
        for x in range(SIZE):
            edge = (x // 4) % 2
            block(picture, x, 0, x, edge, 3 if theme == CAVES else 0)
            picture[edge + 1][x] = 3
    return picture


def spikes(stage: int) -> Picture:
    """Draw a plate with holes (stage 0), with tips as a warning (1) or with spikes (2)."""
    picture = blank(SIZE, SIZE, 1)
    block(picture, 0, 0, 15, 0, 2)
    block(picture, 0, 15, 15, 15, 2)
    block(picture, 0, 0, 0, 15, 2)
    block(picture, 15, 0, 15, 15, 2)
    for x in (4, 11):
        for y in (6, 13):
            block(picture, x - 1, y, x + 1, y, 3)
            if stage == 1:
                block(picture, x, y - 2, x, y - 1, 3)
            elif stage == 2:
                for rise in range(6):
                    block(picture, x - (rise < 4), y - rise, x + (rise < 2), y - rise, 3)
                block(picture, x, y - 3, x, y - 1, 0)
    return picture


def door(number: int) -> Picture:
    picture = blank(SIZE, SIZE, 3)
    block(picture, 1, 1, 14, 14, 2)
    block(picture, 2, 2, 13, 13, 0)
    for y, row in enumerate(emblem(number)):
        for x, on in enumerate(row):
            if on:
                picture[y + 4][x + 4] = 3
    for x, y in ((2, 2), (13, 2), (2, 13), (13, 13)):
        picture[y][x] = 3
    return picture


def lamp(*, lit: bool) -> Picture:
    """Draw the great lamp on its stand."""
    picture = floor(LIGHTHOUSE)
    block(picture, 3, 12, 12, 14, 3)
    block(picture, 4, 13, 11, 13, 2)
    block(picture, 2, 0, 13, 1, 3)
    block(picture, 3, 2, 12, 11, 3)
    block(picture, 4, 2, 11, 11, 0 if lit else 2)
    block(picture, 7, 2, 8, 11, 1 if lit else 3)
    if lit:
        for i in range(4):
            picture[3 + i][1 if i % 2 else 0] = picture[3 + i][14 if i % 2 else 15] = 3
    return picture
