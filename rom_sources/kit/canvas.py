"""Pictures as lists of shades: 0 white (transparent in a sprite), 1 light, 2 dark, 3 black.

All arithmetic uses integers, so the same source gives the same ROM everywhere.
"""

from __future__ import annotations

from itertools import pairwise

Point = tuple[int, int]
Picture = list[list[int]]


def blank(width: int, height: int, shade: int = 0) -> Picture:
    return [[shade] * width for _ in range(height)]


def near(x: int, y: int, a: Point, b: Point, radius2_x4: int) -> bool:
    """Whether (x, y) lies within sqrt(radius2_x4 / 4) of the segment a-b, in integers."""
    px, py, dx, dy = x - a[0], y - a[1], b[0] - a[0], b[1] - a[1]
    length2 = dx * dx + dy * dy
    dot = px * dx + py * dy
    if dot <= 0:
        return 4 * (px * px + py * py) <= radius2_x4
    if dot >= length2:
        return 4 * ((x - b[0]) ** 2 + (y - b[1]) ** 2) <= radius2_x4
    return 4 * ((px * px + py * py) * length2 - dot * dot) <= radius2_x4 * length2


def paint(
    picture: Picture, path: list[Point], radius2_x4: int, shade: int, outline: int = 3
) -> None:
    """Draw a thick line through the points of `path`, with a one-pixel outline around it."""
    height, width = len(picture), len(picture[0])
    pairs = list(pairwise(path)) or [(path[0], path[0])]
    inside = {
        (x, y)
        for y in range(-1, height + 1)
        for x in range(-1, width + 1)
        if any(near(x, y, a, b, radius2_x4) for a, b in pairs)
    }
    edge = {
        (x + i, y + j) for x, y in inside for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))
    } - inside
    for pixels, value in ((edge, outline), (inside, shade)):
        for x, y in pixels:
            if 0 <= x < width and 0 <= y < height:
                picture[y][x] = value
