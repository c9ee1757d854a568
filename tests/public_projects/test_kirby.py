"""examples/kirby, beside a plain computation after PyBoy-RL and PyBoy's game wrapper."""

from itertools import combinations

import numpy as np

from tests.public_projects.scripted import Memory, Moment, game_of, played

BOSS, SCREEN_X, X, STATE, HEALTH, SCORE = 0xD093, 0xD053, 0xD05C, 0xD02C, 0xD086, 0xD070
SCROLL = 0xFF43
STEPS = 2_000


def script(random: np.random.Generator) -> list[Moment]:
    memory = {BOSS: 0, SCREEN_X: 0, X: 70, STATE: 1, HEALTH: 6, SCROLL: 0}
    score, found = 0, []
    for _ in range(STEPS):
        for n in range(4):
            memory[SCORE + n] = score // 10 ** (3 - n) % 10
        found.append(Moment(dict(memory)))
        if random.random() < 0.7:
            memory[X] = int(random.choice([67, 68, 69, 75, 76]))
            memory[SCROLL] = int(random.integers(256))
            memory[SCREEN_X] = memory[SCROLL] // 16
        if random.random() < 0.1:
            memory[BOSS] = int(random.choice([0, 0, 3, 5, max(0, memory[BOSS] - 1)]))
        if random.random() < 0.1:
            memory[HEALTH] = int(random.integers(1, 7))
        if random.random() < 0.1:
            memory[STATE] = int(random.choice([1, 6]))
        score += int(random.choice([0, 0, 0, 20]))
    return [*found, Moment(memory | {HEALTH: 0, BOSS: found[-1].memory[BOSS]})]


def points(memory: Memory) -> int:
    return sum(memory[SCORE + n] * 10 ** (3 - n) for n in range(4))


def progress(memory: Memory) -> int:
    return memory[SCREEN_X] * 16 + (memory[SCROLL] - 7) % 16 + memory[X]


def ladder(before: Memory, now: Memory) -> tuple[str, int]:
    """Which of their cases applies, and its reward, the first of the list first."""
    is_boss_there = now[BOSS] > 0
    cases = [
        ("boss beaten", 10_000, now[BOSS] == 0 and before[BOSS] > 0),
        ("boss hit", 1_000, now[BOSS] < before[BOSS]),
        ("hurt", -100, now[HEALTH] < before[HEALTH] and now[HEALTH] == 1),
        ("dead", -1_000, now[HEALTH] == 0 and before[HEALTH] != 0),
        ("star", 1_000, now[HEALTH] > 0 and now[STATE] == 6 and before[STATE] != 6),
    ]
    if not is_boss_there and now[STATE] != 6:
        is_moving = progress(now) != progress(before)
        cases += [
            ("moving left", -1, now[X] < before[X]),
            ("most left", -5, is_moving and now[X] == 68),
            ("standing", -1, not is_moving),
            ("most right", 5, now[X] == 76),
            ("moving right", 1, True),
        ]
    else:
        cases += [("score", 100, points(now) > points(before)), ("nothing", 0, True)]
    return next((name, reward) for name, reward, applies in cases if applies)


def test_rewards_endings_and_screens_are_theirs() -> None:
    moments = script(np.random.default_rng(8))
    actions = np.random.default_rng(9).integers(19, size=STEPS + 10).tolist()
    ours = played("kirby", moments, actions)
    assert len(ours.rewards) == STEPS
    found = set()
    for step in range(STEPS):
        name, reward = ladder(moments[step].memory, moments[step + 1].memory)
        found.add(name)
        frames = 4 if abs(reward) < 10 else 1  # a difference that the README names
        assert ours.rewards[step] == frames * reward, (step, name)
        assert ours.ends[step] == (moments[step + 1].memory[HEALTH] == 0, False)
    assert ours.infos[-1]["ending"] == "no_health"
    assert len(found) == 12  # all cases were compared
    for seen, screen in zip(ours.observations, ours.screens, strict=True):
        halves = screen[:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(np.asarray(seen)[0], np.ceil(halves))


def test_actions_are_buttons_and_pairs_of_them_that_can_be_pressed() -> None:
    buttons = ["a", "b", "up", "down", "left", "right"]
    pairs = [set(pair) for pair in combinations(buttons, 2)]
    possible = [pair for pair in pairs if pair not in ({"up", "down"}, {"left", "right"})]
    found = [set(action) for action in game_of("kirby").definition.actions.values()]
    assert found == [*({button} for button in buttons), *possible]
