"""examples/tetris_flat, beside a plain computation after gymboy and PyBoy's game wrapper."""

import numpy as np
import pytest

from game_rl.emulator.emulator import SpriteTile
from tests.public_projects.scripted import Moment, game_of, played

SCORE, LEVEL, NEXT, STATE = 0xC0A0, 0xFFA9, 0xC213, 0xFFE1
STEPS = 300
KINDS = [[129], [130], [131], [132], [133], [134], [128, 136, 137, 138, 139, 143], [135]]


def script(random: np.random.Generator, last_state: int) -> list[Moment]:
    score, found = 0, []
    for step in range(STEPS + 1):
        score += int(random.choice([0, 0, 1, 40, 1_200, 30_000]))
        digits = f"{score:06d}"[-6:]
        memory = {SCORE + n: int(digits[4 - 2 * n : 6 - 2 * n], 16) for n in range(3)}
        memory[LEVEL], memory[NEXT] = int(random.integers(20)), int(random.integers(256))
        memory[STATE] = last_state if step == STEPS else int(random.choice([0, 1, 2, 10]))
        tiles = random.choice([47, *range(124, 146)], size=(32, 32)).astype(np.int16)
        sprites = [
            SpriteTile(int(random.integers(-7, 168)), int(random.integers(-7, 150)), int(tile))
            for tile in random.integers(126, 146, size=8)
        ]
        scrolled = int(random.integers(256)), int(random.integers(256))  # it must not matter
        found.append(Moment(memory, tiles, scrolled, sprites))
    return found


def reward(moment: Moment) -> float:
    if moment.memory[STATE] in (0x0D, 0x04):
        return -1.0
    value = 0
    for byte in reversed([moment.memory[SCORE + n] for n in range(3)]):
        value = value * 100 + (byte >> 4) * 10 + (byte & 0x0F)
    return value / 999_999


def board(moment: Moment) -> list[list[int]]:
    assert moment.tiles is not None
    kind_of = {tile: kind for kind, tiles in enumerate(KINDS, 1) for tile in tiles}
    area = [[int(moment.tiles[row, column]) for column in range(2, 12)] for row in range(18)]
    for x, y, tile in moment.sprites:
        column, row = x // 8 - 2, y // 8
        # sprites without a kind are left out, a difference that parts.md names
        if 0 <= row < 18 and 0 <= column < 10 and tile in kind_of:
            area[row][column] = tile
    return [[kind_of.get(tile, 0) for tile in row] for row in area]


@pytest.mark.parametrize("last_state", [0x0D, 0x04])
def test_rewards_endings_and_both_parts_are_theirs(last_state: int) -> None:
    moments = script(np.random.default_rng(last_state), last_state)
    actions = np.random.default_rng(2).integers(9, size=STEPS + 10).tolist()
    ours = played("tetris_flat", moments, actions)
    assert len(ours.rewards) == STEPS
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        assert set(seen) == {"numbers", "board"}
        assert seen["numbers"].tolist() == [moment.memory[LEVEL], moment.memory[NEXT] & 0b11111100]
        assert seen["board"][0].tolist() == board(moment)
        if step:
            assert ours.rewards[step - 1] == pytest.approx(reward(moment), abs=1e-12)
            assert ours.ends[step - 1] == (moment.memory[STATE] in (0x0D, 0x04), False)
    assert ours.infos[-1]["ending"] == "game_over"
    assert ours.rewards[-1] == -1.0


def test_a_button_is_pressed_for_the_first_of_4_frames() -> None:
    names = game_of("tetris_flat").action_names
    assert names == ("none", "a", "b", "left", "right", "up", "down", "start", "select")
    moments = script(np.random.default_rng(0), 0x0D)
    for name, presses in zip(names, played("tetris_flat", moments, range(9)).presses, strict=True):
        frames = [(tuple(press.buttons), press.frames) for press in presses]
        assert frames == ([((), 4)] if name == "none" else [((name,), 1), ((), 3)])
