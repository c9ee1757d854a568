"""examples/pokemon_pinball, beside a plain computation after pokemon-pinball-gym."""

import math
from typing import Any

import numpy as np
import pytest

from tests.public_projects.scripted import Memory, Moment, game_of, played

SCORE, BALLS, EXTRA, TYPE, STAGE = 0xD46A, 0xD49D, 0xD49B, 0xD47E, 0xD4AC
X, Y, SPEED_X, SPEED_Y = 0xD4B3, 0xD4B5, 0xD4BB, 0xD4BD
SAVER, CHARGE, MODE, ACTIVE = 0xD4A4, 0xD517, 0xD550, 0xD54B
STEPS = 5_100


def script(random: np.random.Generator) -> list[Moment]:
    memory = {BALLS: 1, EXTRA: 0, TYPE: 0, STAGE: 0, SAVER: 30, CHARGE: 0, MODE: 0, ACTIVE: 0}
    score, found = 0, []
    for step in range(STEPS + 1):
        digits = f"{score:012d}"
        for place in range(6):
            memory[SCORE + place] = int(digits[10 - 2 * place : 12 - 2 * place], 16)
        for address in (X, Y, SPEED_X, SPEED_Y):
            memory[address] = int(random.integers(256))
        memory[STAGE] = int(random.choice([0, 1, 4, 5, 7, 9, 11, 13, 15]))
        memory[TYPE] = int(random.choice([0, 2, 3, 5]))
        memory[MODE], memory[ACTIVE] = int(random.integers(3)), int(random.integers(2))
        memory[SAVER], memory[CHARGE] = int(random.integers(31)), int(random.integers(16))
        if step == 50:
            memory[EXTRA] += 1  # one more ball, which is no loss
        if step == STEPS:
            memory[BALLS] += 1
        score += int(random.choice([0, 0, 0, 1, 10, 50_000, 30_000_000]))
        found.append(Moment(dict(memory)))
    return found


def points(memory: Memory) -> int:
    value, multiplier = 0, 1
    for place in range(6):
        byte = memory[SCORE + place]
        value += ((byte >> 4) * 10 + (byte & 0x0F)) * multiplier
        multiplier *= 100
    return 10 * value


def balls_left(memory: Memory) -> int:
    return 3 - memory[BALLS] + memory[EXTRA]


def parts(memory: Memory) -> dict[str, Any]:
    return {
        "coords": [memory[X], memory[Y]],
        "velocity": [memory[SPEED_X], memory[SPEED_Y]],
        "current_stage": [memory[STAGE]],
        "ball_type": [memory[TYPE]],
        "special_mode": [memory[MODE]],
        "timers": pytest.approx([memory[ACTIVE], 0.03 * memory[SAVER]]),
        "pikachu_saver_charge": [memory[CHARGE]],
    }


@pytest.mark.slow
def test_rewards_endings_and_parts_are_theirs() -> None:
    moments = script(np.random.default_rng(4))
    actions = np.random.default_rng(5).integers(4, size=STEPS + 10).tolist()
    ours = played("pokemon_pinball", moments, actions)
    assert len(ours.rewards) == STEPS
    fitness = frames_played = 0
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        expected = parts(moment.memory)
        assert set(seen) == {"screen", *expected}
        assert {name: seen[name].tolist() for name in expected} == expected
        if step:
            frames_played += 4
            previous, fitness = fitness, points(moment.memory)
            gained = fitness - previous
            reward = 0.3 * math.log(1 + gained / 50) if gained > 0 else 0
            reward += 0.01 if frames_played <= 20_000 else 0
            assert ours.rewards[step - 1] == pytest.approx(reward), step
            lost = balls_left(moment.memory) < balls_left(moments[step - 1].memory)
            assert ours.ends[step - 1] == (lost, False)
    assert frames_played > 20_000
    assert ours.infos[-1]["ending"] == "ball_lost"


def test_the_picture_is_the_brightness_of_four_pixels() -> None:
    moments = script(np.random.default_rng(4))
    ours = played("pokemon_pinball", moments, [0, 1, 2, 3])
    for seen, screen in zip(ours.observations, ours.screens, strict=True):
        luma = (screen.astype(int) * [77, 150, 29]).sum(axis=2) // 256
        halves = luma.reshape(72, 2, 80, 2).sum(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], (halves + 2) // 4)


def test_the_flippers_are_left_and_a() -> None:
    found = [set(action) for action in game_of("pokemon_pinball").definition.actions.values()]
    assert found == [set(), {"left"}, {"a"}, {"left", "a"}]
