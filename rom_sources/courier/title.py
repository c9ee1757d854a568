"""The title picture: a road that begins by day and ends at night."""

from __future__ import annotations

from canvas import Picture, blank, paint
from figures import COURIER, read
from font import FONT
from scenery import BLACK, DARK, LIGHT, WHITE, block

STARS = ((92, 48), (104, 66), (117, 52), (150, 46), (156, 68), (84, 70), (128, 74), (98, 58))
HORIZON_Y = 88


def title() -> Picture:
    picture = blank(160, 144, WHITE)
    block(picture, 80, 40, 159, HORIZON_Y, BLACK)
    for y in range(40, HORIZON_Y + 1):  # dusk
        for x in range(64, 96):
            picture[y][x] = (WHITE, LIGHT, DARK, BLACK)[(x - 64 + (x + y) % 2 * 4) // 10]
    for x, y in STARS:
        picture[y][x] = WHITE
    paint(picture, [(32, 62)], 4 * 90, LIGHT)
    for x, y in ((18, 0), (-18, 0), (0, -17), (13, -13), (-13, -13), (13, 13), (-13, 13), (0, 17)):
        path = [(32 + x * 3 // 4, 62 + y * 3 // 4), (32 + x, 62 + y)]
        paint(picture, path, 4, DARK, outline=DARK)
    paint(picture, [(132, 60)], 4 * 90, WHITE, outline=BLACK)
    paint(picture, [(137, 57)], 4 * 64, BLACK, outline=BLACK)
    hills(picture)
    letters(picture)
    courier(picture)
    block(picture, 0, 128, 159, 143, BLACK)
    return picture


def hills(picture: Picture) -> None:
    for x in range(160):
        rise = max(
            14 - (x - 30) ** 2 // 90, 18 - (x - 96) ** 2 // 120, 12 - (x - 150) ** 2 // 60, 2
        )
        top = HORIZON_Y - rise
        block(picture, x, top, x, 127, LIGHT if x < 80 else DARK)
        picture[top][x] = BLACK
        road = 104 + (x - 80) ** 2 // 800
        block(picture, x, road, x, road + 12, WHITE)
        picture[road][x] = picture[road + 12][x] = BLACK


def courier(picture: Picture) -> None:
    for y, row in enumerate(read(COURIER)):
        for x, ink in enumerate(row):
            if ink:
                picture[97 + y][72 + x] = WHITE if ink == LIGHT else ink


def letters(picture: Picture) -> None:
    for index, letter in enumerate("COURIER"):
        for y, row in enumerate(FONT[letter].split()):
            for x, bit in enumerate(row):
                if bit == "1":
                    left, top = 4 + 22 * index + 4 * x, 6 + 4 * y
                    block(picture, left, top, left + 3, top + 3, BLACK if y < 5 else DARK)
