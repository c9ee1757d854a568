"""examples/alleyway, beside a plain computation after stable-retro."""

import numpy as np

from game_rl.games.actions import presses_of
from tests.public_projects.scripted import Moment, game_of, played, run_of

SCORE, LIVES = 65482, 51780
STEPS = 400


def script(random: np.random.Generator) -> list[Moment]:
    score, found = 0, []
    for step in range(STEPS + 1):
        score += int(random.choice([0, 0, 0, 1, 2, 5, 300]))
        lives = 0 if step == STEPS else int(random.integers(1, 5))
        found.append(Moment({SCORE: score % 256, SCORE + 1: score // 256, LIVES: lives}))
    return found


def test_rewards_endings_and_pictures_are_theirs() -> None:
    moments = script(np.random.default_rng(1))
    assert moments[-1].memory[SCORE + 1] > 10
    ours = played("alleyway", moments, np.random.default_rng(2).integers(9, size=500).tolist())
    assert len(ours.rewards) == STEPS
    before = moments[0].memory[SCORE] + 256 * moments[0].memory[SCORE + 1]
    for step, moment in enumerate(moments[1:]):
        score = moment.memory[SCORE] + 256 * moment.memory[SCORE + 1]
        delta, before = score - before, score
        assert ours.rewards[step] == (delta * 1.0 if delta > 0 else delta * 0.0)
        assert ours.ends[step] == (moment.memory[LIVES] == 0, False)
    assert ours.infos[-1]["ending"] == "no_lives"
    for seen, screen in zip(ours.observations, ours.screens, strict=True):
        halves = screen[:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(np.asarray(seen), np.ceil(halves)[None])


def test_clipping_whole_points_to_1_is_their_sign() -> None:
    ours = run_of("alleyway").algorithm.reward
    assert (ours.scale, ours.clip, ours.normalize) == (1.0, 1.0, False)
    for points in range(300):
        assert min(points, ours.clip) == np.sign(points)


def test_buttons_are_held_and_each_action_is_one_of_their_combinations() -> None:
    theirs = [[], ["UP"], ["DOWN"]], [[], ["LEFT"], ["RIGHT"]], [[], ["A"], ["B"]]
    allowed = {
        frozenset(button.lower() for button in (*up, *left, *a))
        for up in theirs[0]
        for left in theirs[1]
        for a in theirs[2]
    }
    found = []
    for action in game_of("alleyway").definition.actions.values():
        (press,) = presses_of(action, 4)
        assert press.frames == 4
        found.append(frozenset(press.buttons))
    assert len(set(found)) == 9
    assert allowed.issuperset(found)
