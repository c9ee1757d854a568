"""examples/mario_land, beside a plain computation after PyBoy-RL and PyBoy's game wrapper."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.emulator.emulator import SpriteTile
from tests.public_projects.scripted import Memory, Moment, game_of, played

BLOCK, MARIO_X, SCROLL, RESPAWN = 0xC0AB, 0xC202, 0xFFA4, 0xFFA6
LIVES, WORLD, OVER = 0xDA15, 0xFFB4, 0xC0A4
STATUS_BAR = 0x9820  # row 1 of the background's map
STEPS = 600

SOLID = [142, 143, 221, 222, *range(231, 237), *range(301, 305), 319, 340, 352, 353]
COMPRESSED: list[list[int]] = [
    list(range(81)),
    list(range(99, 110)),
    list(range(112, 122)),
    [96, 110, 122],
    [244],
    [131],
    [132],
    [134],
    [255],
    [*SOLID, *range(355, 363), 381, 382, 383],
    [230, 238, 239],
    [128, 130, 354],
    [129],
    list(range(368, 381)),
    [144],
    [150, 151, 152, 153],
    [146, 147, 148, 149],
    [*range(160, 164), *range(176, 180)],
    [*range(192, 196), *range(208, 212)],
    [*range(164, 168), *range(180, 184)],
    [198, 199, *range(201, 206), 214, 215, 217, 218, 219],
    [240, 241, 242, 243],
    [249],
    [172, 188, 196, 197, 212, 213, 226, 227],
    [154, 155],
    [157, 158],
    [237],
]


def script(random: np.random.Generator) -> list[Moment]:
    memory = {BLOCK: 0, MARIO_X: 81, SCROLL: 0, RESPAWN: 0, LIVES: 0x12, WORLD: 0x11, OVER: 0}
    memory |= {STATUS_BAR + column: 0x2C for column in range(20)}
    time, found = 400, [moment(memory, 400, random)]
    for _ in range(STEPS):
        memory[SCROLL] = (memory[SCROLL] + int(random.integers(-1, 5))) % 256
        memory[BLOCK] = memory[SCROLL] // 16 + int(random.integers(3))
        memory[MARIO_X] = int(random.integers(70, 90))
        time -= int(random.random() < 0.3)
        if random.random() < 0.05:
            memory[RESPAWN] = int(random.choice([0, 0, 0, 90]))
        if random.random() < 0.04:
            tens, ones = divmod(int(random.integers(100)), 10)
            memory[LIVES] = 16 * tens + ones
        if random.random() < 0.05:
            levels = [0x11, 0x12, 0x13, 0x21, 0x22, 0x23, 0x31]
            memory[WORLD] = int(random.choice(levels))
            time = 400
        found.append(moment(memory, time, random))
    memory[OVER] = 0x39
    return [*found, moment(memory, time, random)]


def moment(memory: Memory, time: int, random: np.random.Generator) -> Moment:
    tiles = random.integers(384, size=(32, 32)).astype(np.int16)
    for place, digit in enumerate(f"{time:3d}"):
        number = 0x2C if digit == " " else int(digit)
        memory[STATUS_BAR + 17 + place] = number
        tiles[1, 17 + place] = 256 + number
    sprites = [
        SpriteTile(int(random.integers(-7, 168)), int(random.integers(-7, 150)), int(tile))
        for tile in random.integers(384, size=10)
    ]
    scrolled = int(random.integers(256)), int(random.integers(256))
    return Moment(dict(memory), tiles, scrolled, sprites)


def number_on_screen(tiles: NDArray[np.int16], column: int, length: int) -> int:
    """The sum of digits as the game wrapper makes it; tile 300 is blank, 256 is 0."""
    total = 0
    for place, tile in enumerate(tiles[1, column : column + length].tolist()):
        if tile != 300:
            total += (tile - 256) * 10 ** (length - 1 - place)
    return total


class State:
    def __init__(self, now: Moment) -> None:
        memory = now.memory
        within = (memory[SCROLL] - 7) % 16
        self.x = memory[BLOCK] * 16 + (within if within != 0 else 16) + memory[MARIO_X]
        assert now.tiles is not None
        self.time = number_on_screen(now.tiles, 17, 3)
        self.lives = (memory[LIVES] >> 4) * 10 + (memory[LIVES] & 0x0F)
        self.world = (memory[WORLD] >> 4, memory[WORLD] & 0x0F)


def reward(before: State, now: Moment) -> float:
    if now.memory[RESPAWN] > 0:
        return 0
    state = State(now)
    steps = max(state.world[0] - before.world[0], state.world[1] - before.world[1])
    return (
        (state.time - before.time)
        - 15 * (state.lives - before.lives)
        + (state.x - before.x)
        + 15 * steps
    )


def game_area(now: Moment) -> list[list[int]]:
    """PyBoy's area of 20 x 16 below the status bar, in its compressed classes."""
    assert now.tiles is not None
    class_of = {tile: n for n, tiles in enumerate(COMPRESSED, 1) for tile in tiles}
    across, down = (value // 8 for value in now.scrolled)
    area = [
        [int(now.tiles[(2 + row + down) % 32, (column + across) % 32]) for column in range(20)]
        for row in range(16)
    ]
    for x, y, tile in now.sprites:
        column, row = x // 8, y // 8 - 2
        # sprites without a class are left out, a difference that parts.md names
        if 0 <= row < 16 and 0 <= column < 20 and tile in class_of:
            area[row][column] = tile
    return [[class_of.get(tile, 0) for tile in row] for row in area]


def test_rewards_endings_and_tiles_are_theirs() -> None:
    moments = script(np.random.default_rng(2))
    actions = np.random.default_rng(3).integers(5, size=STEPS + 10).tolist()
    ours = played("mario_land", moments, actions)
    assert len(ours.rewards) == STEPS + 1
    for step, (now, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        assert set(seen) == {"tiles"}
        assert seen["tiles"][0].tolist() == game_area(now), step
        if step:
            expected: Any = reward(State(moments[step - 1]), now)
            assert ours.rewards[step - 1] == pytest.approx(expected), step
            over = now.memory[OVER] == 0x39
            assert ours.ends[step - 1] == (over, False)
    assert ours.infos[-1]["ending"] == "game_over"
    terms = ours.infos[-1]["reward_terms"]
    assert all(terms[name] for name in ("clock", "death", "movement", "level"))


def test_actions_are_held_for_4_frames_and_are_their_five() -> None:
    """All pairs of right, A and left, but right with left, after each of them alone."""
    assert [set(buttons) for buttons in game_of("mario_land").definition.actions.values()] == [
        {"right"},
        {"a"},
        {"left"},
        {"right", "a"},
        {"a", "left"},
    ]
    moments = script(np.random.default_rng(2))
    for presses in played("mario_land", moments, range(5)).presses:
        assert [press.frames for press in presses] == [4]
