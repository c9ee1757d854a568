"""The fighters and the sparks of their blows.

The fighters are skeletons: a pose is a set of joints, and a style says how thick and how dark each
part is. Two styles on one set of poses make two fighters that look different but have equal reach.
"""

from __future__ import annotations

from canvas import Picture, Point, blank, paint

WIDTH, HEIGHT, CENTRE = 56, 48, 20  # canvas of one pose; CENTRE is the column of the fighter's x

# Joints of a fighter that faces right. arm_back and leg_back are the limbs behind the body.
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

# These poses are always in video memory. The others are copied to one of a fighter's two buffers
# when they are needed, because all poses take about 250 sprites, and the console can show 128.
RESIDENT = ("STAND", "WALK_CLOSE", "WALK_WIDE", "PUNCH_WINDUP")
BUFFER_SPRITES = 14


def draw_kite(joints: dict[str, list[Point]]) -> Picture:
    """Draw the player: slim, in a white suit, with a black belt and a flying headband."""
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
    """Draw the opponent: broad, in dark armour, with a horned helmet."""
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
    """Draw a black line across the torso, a little above the hip."""
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
