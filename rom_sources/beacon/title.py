"""The title picture: a lighthouse at night, dark or lit."""

from __future__ import annotations

from canvas import Picture, blank, paint
from font import FONT
from scenery import block

NIGHT = 3
STARS = ((9, 53), (22, 70), (31, 46), (47, 62), (58, 88), (70, 51), (141, 48), (152, 70), (12, 92),
         (38, 84), (146, 92), (84, 66), (130, 84), (26, 100), (62, 106), (154, 108))  # fmt: skip
TOWER, LAMP_Y, SEA_Y = 112, 56, 116


def title(*, lit: bool) -> Picture:
    picture = blank(160, 144, NIGHT)
    for x, y in STARS:
        picture[y][x] = 0 if (x + y) % 3 else 1
    if lit:
        beams(picture)
    else:
        moon(picture)
    sea(picture, lit=lit)
    rock(picture)
    tower(picture, lit=lit)
    letters(picture)
    block(picture, 0, 128, 159, 143, NIGHT)
    return picture


def moon(picture: Picture) -> None:
    paint(picture, [(24, 62)], 4 * 49, 0, outline=NIGHT)
    paint(picture, [(28, 59)], 4 * 36, NIGHT, outline=NIGHT)


def beams(picture: Picture) -> None:
    for x in range(160):
        distance = abs(x - TOWER)
        for y in range(LAMP_Y - 2 - distance // 6, LAMP_Y + 3 + distance // 6):
            if distance > 6:
                picture[y][x] = 1 if (x + y) % 2 or distance < 48 else 2


def sea(picture: Picture, *, lit: bool) -> None:
    for y in range(SEA_Y, 128):
        for x in range(160):
            picture[y][x] = 2
            swell = (x + 5 * (y // 3)) % 16
            if y % 3 == 0 and swell < 6:
                picture[y][x] = 1
            if lit and y % 3 == 1 and abs(x - TOWER) < 60 and swell in (8, 9):
                picture[y][x] = 0
    block(picture, 0, SEA_Y, 159, SEA_Y, 1)


def rock(picture: Picture) -> None:
    for x in range(80, 146):
        top = 108 + abs(x - TOWER) // 4 + (x * 7 % 5) // 2
        for y in range(top, 122 + (x * 3 % 4)):
            picture[y][x] = 3 if y == top or (x + 2 * y) % 7 == 0 else 2 if y > top + 3 else 1


def tower(picture: Picture, *, lit: bool) -> None:
    for y in range(66, 110):
        half = 6 + (y - 66) // 10
        stripe = (y - 66) // 9 % 2
        block(picture, TOWER - half, y, TOWER + half, y, 2 if stripe else 0)
        block(picture, TOWER + half - 2, y, TOWER + half, y, 3 if stripe else 1)
        picture[y][TOWER - half] = picture[y][TOWER + half] = 3
    for top in (78, 92):
        block(picture, TOWER - 2, top, TOWER + 1, top + 5, 3)
        block(picture, TOWER - 1, top + 1, TOWER, top + 4, 0 if lit else 2)
    block(picture, TOWER - 9, 63, TOWER + 9, 65, 1)
    block(picture, TOWER - 9, 65, TOWER + 9, 66, 3)
    block(picture, TOWER - 6, 51, TOWER + 6, 62, 3)
    block(picture, TOWER - 5, 52, TOWER + 5, 62, 0 if lit else 2)
    for x in (TOWER - 5, TOWER, TOWER + 5):
        block(picture, x, 52, x, 62, 3)
    for i in range(6):
        block(picture, TOWER - 7 + i, 50 - i, TOWER + 7 - i, 50 - i, 1)
    block(picture, TOWER, 42, TOWER, 45, 1)


def letters(picture: Picture) -> None:
    for index, letter in enumerate("BEACON"):
        for y, row in enumerate(FONT[letter].split()):
            for x, bit in enumerate(row):
                if bit == "1":
                    left, top = 8 + 25 * index + 4 * x, 8 + 4 * y
                    block(picture, left, top, left + 3, top + 3, 0 if y < 5 else 1)
