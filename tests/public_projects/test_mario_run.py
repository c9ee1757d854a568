"""examples/mario_run, beside a plain computation after pyboy_environment."""

from itertools import product

import numpy as np
import pytest

from game_rl.emulator.emulator import SpriteTile
from tests.public_projects.scripted import Memory, Moment, game_of, played, run_of
from tests.public_projects.test_mario_land import game_area

BLOCK, MARIO_X, SCROLL, LIVES, STAGE, STATE = 0xC0AB, 0xC202, 0xFFA4, 0xDA15, 0x982E, 0xFFB3
SCORE, BLANK = 0x9820, 0x2C
STEPS = 400


def script(random: np.random.Generator, *, is_won: bool) -> list[Moment]:
    memory = {BLOCK: 0, MARIO_X: 81, SCROLL: 0, LIVES: 2, STAGE: 1, STATE: 0}
    score, found = 0, []
    for step in range(STEPS + 1):
        tiles = random.integers(384, size=(32, 32)).astype(np.int16)
        for place, digit in enumerate(f"{score:6d}"):
            memory[SCORE + place] = BLANK if digit == " " else int(digit)
            tiles[1, place] = 256 + memory[SCORE + place]
        if step == STEPS:
            memory |= {STAGE: 2} if is_won else {STATE: 0x39}
        sprites = [
            SpriteTile(int(random.integers(-7, 168)), int(random.integers(-7, 150)), int(tile))
            for tile in random.integers(384, size=10)
        ]
        scrolled = int(random.integers(256)), int(random.integers(256))
        found.append(Moment(dict(memory), tiles, scrolled, sprites))
        memory[SCROLL] = (memory[SCROLL] + int(random.integers(-2, 5))) % 256
        memory[BLOCK] = min(250, step // 4 + int(random.integers(3)))
        memory[MARIO_X] = int(random.integers(70, 90))
        if random.random() < 0.05:
            memory[LIVES] = int(random.integers(10))
        if random.random() < 0.03:
            memory[STAGE] = 1  # only a higher one ends the episode
        score += int(random.choice([0, 0, 100, 50]))
    return found


def x_position(memory: Memory) -> int:
    scroll = memory[SCROLL]
    real = (scroll - 7) % 16 if (scroll - 7) % 16 != 0 else 16
    return memory[BLOCK] * 16 + real + memory[MARIO_X]


def score(moment: Moment) -> int:
    assert moment.tiles is not None
    total = 0
    for place, tile in enumerate(moment.tiles[1, 0:6].tolist()):
        if tile != 300:
            total += (tile - 256) * 10 ** (5 - place)
    return total


@pytest.mark.parametrize("is_won", [True, False])
def test_rewards_endings_and_tiles_are_theirs(is_won: bool) -> None:
    moments = script(np.random.default_rng(21), is_won=is_won)
    actions = np.random.default_rng(22).integers(12, size=STEPS + 10).tolist()
    ours = played("mario_run", moments, actions)
    assert len(ours.rewards) == STEPS
    farthest = 0
    for step, (now, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        assert set(seen) == {"tiles"}
        assert seen["tiles"][0].tolist() == game_area(now), step
        if step:
            before = moments[step - 1]
            expected = max(0, x_position(now.memory) - farthest)
            farthest = max(farthest, x_position(now.memory))
            expected += 5 * (now.memory[LIVES] - before.memory[LIVES])
            expected += score(now) - score(before)
            assert ours.rewards[step - 1] == expected, step
            done = now.memory[STAGE] > before.memory[STAGE]
            assert ours.ends[step - 1] == (done, now.memory[STATE] == 0x39)
    assert ours.infos[-1]["ending"] == ("stage_done" if is_won else "game_over")


def test_actions_are_all_sets_of_their_buttons_but_left_with_right() -> None:
    sets = product([[], ["left"], ["right"]], [[], ["a"]], [[], ["b"]])
    found = [set(action) for action in game_of("mario_run").definition.actions.values()]
    assert len(found) == 12
    assert all({*pad, *a, *b} in found for pad, a, b in sets)
    env = run_of("mario_run").env
    assert (env.frame_skip, env.max_episode_timesteps) == (24, 1_000)
