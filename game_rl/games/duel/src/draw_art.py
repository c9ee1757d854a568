"""Draws every picture of the game and writes them as C: art.c and art.h in the named folder.

The fighters are skeletons: a pose is a set of joints, a style says how thick and how dark each part
is. Two styles on one set of poses make two fighters who look different and reach equally far. Only
integers are used, so that the same source gives the same ROM everywhere. Shades: 0 white
(transparent in a sprite), 1 light, 2 dark, 3 black.
"""

from __future__ import annotations

import sys
from itertools import chain, pairwise
from pathlib import Path

Point = tuple[int, int]
Picture = list[list[int]]
Tile = tuple[tuple[int, ...], ...]

# --- canvas ---


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
    """A thick line through the points of path, with a one-pixel outline around the whole of it."""
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


# --- fighters ---

WIDTH, HEIGHT, CENTRE = 56, 48, 20  # canvas of one pose; CENTRE is the column of the fighter's x

# Joints of a fighter who looks right. arm_back and leg_back are the limbs behind the body.
LEGS_STAND = {
    "leg_back": [(18, 30), (14, 38), (12, 45)],
    "leg_front": [(20, 30), (25, 37), (24, 45)],
}
LEGS_WIDE = {"leg_back": [(18, 30), (13, 37), (8, 45)], "leg_front": [(20, 30), (27, 37), (28, 45)]}
LEGS_CLOSE = {
    "leg_back": [(18, 30), (17, 38), (15, 45)],
    "leg_front": [(20, 30), (22, 38), (20, 45)],
}
UPRIGHT = {"head": [(21, 9)], "torso": [(20, 18), (19, 28)]}
GUARD = {"arm_back": [(22, 18), (25, 24), (30, 19)], "arm_front": [(17, 18), (20, 26), (26, 22)]}

POSES: dict[str, dict[str, list[Point]]] = {
    "STAND": UPRIGHT | GUARD | LEGS_STAND,
    "WALK_CLOSE": UPRIGHT | GUARD | LEGS_CLOSE,
    "WALK_WIDE": UPRIGHT | GUARD | LEGS_WIDE,
    "JUMP": {
        "head": [(21, 12)], "torso": [(20, 21), (19, 29)],
        "arm_back": [(22, 20), (28, 18), (30, 11)], "arm_front": [(18, 20), (11, 19), (9, 12)],
        "leg_back": [(18, 31), (13, 36), (17, 42)], "leg_front": [(21, 31), (28, 33), (26, 41)],
    },
    "PUNCH_WINDUP": UPRIGHT | LEGS_STAND | {
        "arm_back": [(22, 18), (25, 24), (30, 19)], "arm_front": [(17, 18), (9, 21), (7, 14)],
    },
    "PUNCH": {"head": [(23, 9)], "torso": [(22, 18), (19, 28)]} | LEGS_WIDE | {
        "arm_back": [(20, 19), (15, 24), (19, 28)], "arm_front": [(22, 18), (30, 17), (40, 17)],
        "fist": [(41, 17)],
    },
    "KICK_WINDUP": {
        "head": [(14, 10)], "torso": [(15, 19), (19, 28)],
        "arm_back": [(17, 19), (23, 20), (26, 14)], "arm_front": [(13, 19), (8, 25), (6, 19)],
        "leg_back": [(18, 30), (17, 38), (15, 45)], "leg_front": [(20, 30), (29, 27), (27, 36)],
    },
    "KICK": {
        "head": [(11, 12)], "torso": [(13, 20), (19, 28)],
        "arm_back": [(15, 20), (21, 19), (24, 13)], "arm_front": [(11, 20), (9, 28), (15, 25)],
        "leg_back": [(18, 30), (18, 38), (15, 45)], "leg_front": [(20, 29), (32, 25), (45, 21)],
    },
    "RECOVER": {
        "head": [(27, 16)], "torso": [(24, 23), (19, 31)],
        "arm_back": [(26, 24), (31, 29), (32, 36)], "arm_front": [(23, 24), (24, 32), (28, 38)],
        "leg_back": [(18, 32), (13, 38), (10, 45)], "leg_front": [(20, 33), (24, 39), (21, 45)],
    },
    "JUMP_KICK": {
        "head": [(15, 10)], "torso": [(16, 19), (20, 27)],
        "arm_back": [(18, 19), (24, 19), (28, 14)], "arm_front": [(14, 19), (8, 23), (6, 16)],
        "leg_back": [(19, 29), (16, 36), (22, 39)], "leg_front": [(21, 28), (30, 33), (40, 39)],
    },
    "BLOCK": {
        "head": [(17, 13)], "torso": [(17, 21), (18, 30)],
        "arm_back": [(20, 21), (28, 25), (28, 10)], "arm_front": [(17, 22), (24, 27), (24, 13)],
        "leg_back": [(17, 31), (11, 38), (9, 45)], "leg_front": [(20, 32), (26, 38), (24, 45)],
    },
    "HIT": {
        "head": [(9, 13)], "torso": [(13, 20), (19, 29)],
        "arm_back": [(15, 20), (23, 22), (30, 20)], "arm_front": [(12, 21), (15, 28), (22, 31)],
        "leg_back": [(18, 31), (15, 38), (10, 45)], "leg_front": [(20, 31), (27, 36), (30, 44)],
    },
    "KO": {
        "head": [(4, 42)], "torso": [(13, 42), (22, 42)],
        "arm_back": [(13, 40), (18, 36), (23, 37)], "arm_front": [(13, 43), (17, 46), (22, 46)],
        "leg_back": [(23, 42), (30, 38), (34, 45)], "leg_front": [(23, 43), (32, 44), (39, 45)],
    },
    "WIN": UPRIGHT | LEGS_CLOSE | {
        "arm_back": [(22, 18), (29, 14), (29, 4)], "arm_front": [(17, 18), (10, 14), (10, 4)],
    },
}  # fmt: skip

# These poses always lie in video memory. The others are copied into one of a fighter's two buffers
# when they are needed: all poses are about 250 sprites, and the console can show 128.
RESIDENT = ("STAND", "WALK_CLOSE", "WALK_WIDE", "PUNCH_WINDUP")
BUFFER_SPRITES = 14


def draw_kite(joints: dict[str, list[Point]]) -> Picture:
    """The player: slim, white suit, black belt, a headband whose tail flies behind."""
    picture = blank(WIDTH, HEIGHT)
    paint(picture, joints["arm_back"], 14, 1)
    paint(picture, joints["leg_back"], 16, 1)
    foot(picture, joints["leg_back"][-1], 2)
    paint(picture, joints["torso"], 60, 1)
    belt(picture, joints["torso"])
    paint(picture, joints["leg_front"], 16, 1)
    foot(picture, joints["leg_front"][-1], 2)
    hx, hy = joints["head"][0]
    paint(picture, [(hx - 5, hy - 2), (hx - 9, hy + 1)], 2, 3)
    paint(picture, joints["head"], 84, 2)
    for x in range(hx - 5, hx + 6):
        for y in (hy - 3, hy - 2):
            if 0 <= x < WIDTH and picture[y][x]:
                picture[y][x] = 1
        if picture[hy - 1][max(x, 0)]:
            picture[hy - 1][max(x, 0)] = 3 if x < hx + 4 else picture[hy - 1][max(x, 0)]
    picture[hy + 1][hx + 3] = 3
    paint(picture, joints["arm_front"], 14, 1)
    for name in ("arm_front", "fist"):
        if name in joints:
            paint(picture, [joints[name][-1]], 18, 2)
    return picture


def draw_rook(joints: dict[str, list[Point]]) -> Picture:
    """The opponent: broad, dark armour, a horned helmet."""
    picture = blank(WIDTH, HEIGHT)
    paint(picture, joints["arm_back"], 22, 2)
    paint(picture, joints["leg_back"], 26, 2)
    foot(picture, joints["leg_back"][-1], 3)
    paint(picture, joints["torso"], 110, 2)
    plate(picture, joints["torso"])
    paint(picture, joints["leg_front"], 26, 2)
    foot(picture, joints["leg_front"][-1], 3)
    hx, hy = joints["head"][0]
    for side in (-1, 1):
        paint(picture, [(hx + 4 * side, hy - 3), (hx + 7 * side, hy - 7)], 4, 1)
    paint(picture, joints["head"], 90, 3)
    for x in range(hx - 1, hx + 5):
        for y in (hy, hy + 1):
            picture[y][x] = 1
    paint(picture, joints["arm_front"], 22, 2)
    for name in ("arm_front", "fist"):
        if name in joints:
            paint(picture, [joints[name][-1]], 26, 1)
    return picture


def foot(picture: Picture, at: Point, shade: int) -> None:
    paint(picture, [at, (at[0] + 3, at[1])], 5, shade)


def belt(picture: Picture, torso: list[Point]) -> None:
    """A black line across the torso, a little above the hip."""
    (ax, ay), (bx, by) = torso
    cx, cy = (ax + 3 * bx) // 4, (ay + 3 * by) // 4
    dx, dy = bx - ax, by - ay
    for y in range(cy - 6, cy + 7):
        for x in range(cx - 6, cx + 7):
            across = abs((x - cx) * dx + (y - cy) * dy)
            if (
                0 <= y < HEIGHT
                and 0 <= x < WIDTH
                and across * across * 2 <= dx * dx + dy * dy
                and picture[y][x]
            ):
                picture[y][x] = 3


def plate(picture: Picture, torso: list[Point]) -> None:
    paint(
        picture,
        [((torso[0][0] * 2 + torso[1][0]) // 3, (torso[0][1] * 2 + torso[1][1]) // 3)],
        14,
        1,
    )


SPARKS = {
    "HIT": ["...3....3.......", "...33..33....3..", "....313113..33..", ".3..31111333....",
            "..3331111113....", "...311111113333.", "..3111111111133.", "331111111111333.",
            ".33311111111113.", "...311111111333.", "..33111111113...", ".33.311131133...",
            "33..3133.3133...", "...333....333...", "...33......33...", "..3..........3.."],
    "GUARD": ["......33........", ".....3113.......", ".....3113.......", "......31133.....",
              "......3.3113....", "........3113....", "........31113...", ".........3113...",
              ".........3113...", "........31113...", "........3113....", "......3.3113....",
              "......31133.....", ".....3113.......", ".....3113.......", "......33........"],
}  # fmt: skip

# --- backgrounds ---

FONT = {
    "0": "00100 01110 11011 11011 11011 01110 00100",
    "1": "00110 01110 00110 00110 00110 00110 01111",
    "2": "11110 00011 00011 01110 11000 11000 11111",
    "3": "11110 00011 00011 01110 00011 00011 11110",
    "4": "11011 11011 11011 11111 00011 00011 00011",
    "5": "11111 11000 11000 11110 00011 00011 11110",
    "6": "01110 11000 11000 11110 11011 11011 01110",
    "7": "11111 00011 00011 00110 00110 01100 01100",
    "8": "01110 11011 11011 01110 11011 11011 01110",
    "9": "01110 11011 11011 01111 00011 00011 01110",
    "A": "01110 11011 11011 11111 11011 11011 11011",
    "B": "11110 11011 11011 11110 11011 11011 11110",
    "C": "01111 11000 11000 11000 11000 11000 01111",
    "D": "11110 11011 11011 11011 11011 11011 11110",
    "E": "11111 11000 11000 11110 11000 11000 11111",
    "F": "11111 11000 11000 11110 11000 11000 11000",
    "G": "01111 11000 11000 11011 11011 11011 01111",
    "H": "11011 11011 11011 11111 11011 11011 11011",
    "I": "01111 00110 00110 00110 00110 00110 01111",
    "J": "00111 00011 00011 00011 00011 11011 01110",
    "K": "11011 11011 11010 11100 11010 11011 11011",
    "L": "11000 11000 11000 11000 11000 11000 11111",
    "M": "10001 11011 11111 11111 10101 10001 10001",
    "N": "10011 11011 11111 11111 11111 11011 11001",
    "O": "01110 11011 11011 11011 11011 11011 01110",
    "P": "11110 11011 11011 11110 11000 11000 11000",
    "Q": "01110 11011 11011 11011 11011 11010 01101",
    "R": "11110 11011 11011 11110 11010 11011 11011",
    "S": "01111 11000 11000 01110 00011 00011 11110",
    "T": "11111 00110 00110 00110 00110 00110 00110",
    "U": "11011 11011 11011 11011 11011 11011 01110",
    "V": "11011 11011 11011 11011 11011 01110 00100",
    "W": "10001 10001 10101 11111 11111 11011 10001",
    "X": "11011 11011 01110 00100 01110 11011 11011",
    "Y": "11011 11011 11011 01110 00110 00110 00110",
    "Z": "11111 00011 00110 01110 01100 11000 11111",
    "!": "00110 00110 00110 00110 00000 00110 00110",
    ".": "00000 00000 00000 00000 00000 00110 00110",
    "?": "01110 11011 00011 00110 00110 00000 00110",
    ">": "10000 11000 11100 11110 11100 11000 10000",
}  # fmt: skip
SKY = 1


def glyph(letter: str, shade: int = 3, ground: int = SKY) -> Picture:
    tile = blank(8, 8, ground)
    for y, row in enumerate(FONT[letter].split()):
        for x, bit in enumerate(row):
            if bit == "1":
                tile[y][x + 1] = shade
    return tile


def bar(filled: int, *, mirrored: bool) -> Picture:
    """Eight columns of a health bar, `filled` of them full."""
    tile = blank(8, 8, 3)
    for y in range(1, 6):
        for x in range(8):
            tile[y][x] = (1 if y == 5 else 0) if x < filled else 3
    tile[7] = [SKY] * 8  # keeps the bar apart from the names
    return [row[::-1] for row in tile] if mirrored else tile


def marker(*, won: bool) -> Picture:
    """A round that is won (a full disc) or not yet (a ring)."""
    tile = blank(8, 8, SKY)
    paint(tile, [(3, 3)], 36, 3 if won else 0)
    return tile


def ground_and_sky() -> Picture:
    """Snowy peaks that fade into the light sky, and a dark floor: nothing dark behind a fighter."""
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
    """The gate of the arena: two posts at the walls and a beam between them."""
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


# --- tiles ---


def cut(picture: Picture, x: int, y: int, height: int) -> Tile:
    return tuple(tuple(row[x : x + 8]) for row in picture[y : y + height])


class TileBank:
    """Tiles in the order of their first use; the same tile is stored once."""

    def __init__(self) -> None:
        self.numbers: dict[Tile, int] = {}

    def number(self, tile: Tile) -> int:
        return self.numbers.setdefault(tile, len(self.numbers))

    def bytes(self) -> list[int]:
        """Two bits a pixel as the console has them: low bits of a row, then its high bits."""
        return [
            sum((shade >> bit & 1) << (7 - x) for x, shade in enumerate(row))
            for tile in self.numbers
            for row in tile
            for bit in (0, 1)
        ]


def figure(bank: TileBank, picture: Picture, left: int) -> list[int]:
    """Tiles so far, parts, then (y, x, tile) of each 8x16 sprite that is not empty.

    x and y are offsets from the place of the feet, modulo 256.
    """
    parts = []
    for y in range(0, len(picture), 16):
        for x in range(0, len(picture[0]), 8):
            tile = cut(picture, x, y, 16)
            if any(map(any, tile)):
                parts.append([y, (x - left) % 256, 2 * bank.number(tile)])
    return [len(bank.numbers), len(parts), *chain.from_iterable(parts)]


def shifted(picture: Picture, columns: int) -> Picture:
    return [[0] * columns + row + [0] * (8 - columns) for row in picture]


def fewest_sprites(picture: Picture, left: int) -> tuple[TileBank, list[int]]:
    """The figure on the column grid that needs the fewest sprites, with a bank of its own."""
    found = []
    for columns in range(8):
        bank = TileBank()
        found.append((bank, figure(bank, shifted(picture, columns), left + columns)))
    return min(found, key=lambda pair: len(pair[1]))


def c_array(kind: str, name: str, values: list[int] | list[str]) -> str:
    lines = [", ".join(map(str, values[i : i + 20])) for i in range(0, len(values), 20)]
    return f"{kind} {name}[] = {{\n    " + ",\n    ".join(lines) + "\n};\n"


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
            raise SystemExit(f"the letter {letter} looks like another")
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
    (folder / "art.c").write_text("".join(source))
    (folder / "art.h").write_text("".join(header))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
