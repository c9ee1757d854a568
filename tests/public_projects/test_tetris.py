"""examples/tetris, beside a plain computation after the Game Boy Learning Environment."""

import numpy as np

from tests.public_projects.scripted import Moment, game_of, played

SCORE, GAME_STATE = 0xC0A0, 0xFFE1
STEPS = 300


def script(random: np.random.Generator) -> list[Moment]:
    score, found = 0, [Moment({SCORE: 0, SCORE + 1: 0, SCORE + 2: 0, GAME_STATE: 0})]
    for step in range(STEPS):
        score += int(random.choice([0, 0, 0, 1, 3, 40, 100, 300, 1_200]))
        digits = f"{score:06d}"
        parts = [int(digits[place : place + 2], 16) for place in (4, 2, 0)]
        memory = dict(zip(range(SCORE, SCORE + 3), parts, strict=True))
        found.append(Moment(memory | {GAME_STATE: 13 if step == STEPS - 1 else step % 13}))
    return found


def test_rewards_endings_and_pictures_are_theirs() -> None:
    moments = script(np.random.default_rng(1))
    actions = np.random.default_rng(2).integers(7, size=STEPS + 10).tolist()
    ours = played("tetris", moments, actions)
    assert len(ours.rewards) == STEPS
    before = 0
    for step, moment in enumerate(moments[1:]):
        byte = moment.memory[SCORE]
        score = 10 * (byte >> 4) + (byte & 15)
        assert ours.rewards[step] == score - before
        before = score
        assert ours.ends[step] == (moment.memory[GAME_STATE] == 13, False)
    assert ours.infos[-1]["ending"] == "game_over"
    assert min(ours.rewards) < 0 < max(ours.rewards)
    for seen, screen in zip(ours.observations, ours.screens, strict=True):
        assert np.array_equal(np.asarray(seen), np.moveaxis(screen, 2, 0))


def test_buttons_are_pressed_for_8_frames_and_released_for_8() -> None:
    names = game_of("tetris").action_names
    assert names == ("a", "b", "up", "down", "right", "left", "pass")
    moment = script(np.random.default_rng(1))[0]
    for name, presses in zip(names, played("tetris", [moment] * 8, range(7)).presses, strict=True):
        frames = [(tuple(press.buttons), press.frames) for press in presses]
        assert frames == ([((), 16)] if name == "pass" else [((name,), 8), ((), 8)])
