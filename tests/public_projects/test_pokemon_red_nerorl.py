"""examples/pokemon_red_nerorl, beside a plain computation after neroRL's environment."""

import math

import numpy as np
import pytest

from tests.public_projects.scripted import Memory, Moment, game_of, played, run_of
from tests.public_projects.test_pokemon_red_v2 import health, highest_first, in_the_world
from tests.public_projects.test_pokemon_red_v2 import script as script_of_v2

LEVELS = [0xD18C, 0xD1B8, 0xD1E4, 0xD210, 0xD23C, 0xD268]
OPPONENTS = [0xD8C5, 0xD8F1, 0xD91D, 0xD949, 0xD975, 0xD9A1]
EVENTS = range(0xD747, 0xD7F6)
PARTY_SIZE, BADGES, MAP, Y, X = 0xD163, 0xD356, 0xD35E, 0xD361, 0xD362
STEPS = 500


def script(random: np.random.Generator) -> list[Moment]:
    opponents, found = dict.fromkeys(OPPONENTS, 0), []
    for step, moment in enumerate(script_of_v2(random)[: STEPS + 1]):
        opponents[int(random.choice(OPPONENTS))] = int(random.integers(4 + step // 20))
        found.append(Moment(moment.memory | opponents))
    return found


class Theirs:
    def __init__(self, memory: Memory) -> None:
        self.base = self.bits(memory)
        self.most_events = self.most_opponent = self.deaths = 0
        self.most_level = self.healing = 0.0
        self.last_health, self.party_size = 1.0, 0
        self.seen: dict[str, int] = {}
        self.explored = np.zeros((484, 476), np.uint8)
        self.explored[in_the_world(memory)] = 255  # a difference that the README names
        self.total = self.score(memory)

    def bits(self, memory: Memory) -> int:
        return sum(bin(memory[a]).count("1") for a in EVENTS)

    def score(self, memory: Memory) -> float:
        events = self.bits(memory) - self.base - (memory[0xD754] & 1)
        self.most_events = max(self.most_events, events, 0)
        level: float = max(sum(max(memory[a] - 2, 0) for a in LEVELS) - 4, 0)
        if level >= 22:
            level = (level - 22) / 4 + 22
        self.most_level = max(self.most_level, level)
        self.most_opponent = max(self.most_opponent, max(memory[a] for a in OPPONENTS) - 5)
        return 0.5 * (
            4.0 * self.most_events
            + 1.0 * self.most_level
            + 5.0 * self.healing
            + 0.2 * self.most_opponent
            - 0.1 * self.deaths
            + 5.0 * bin(memory[BADGES]).count("1")
            + 1.0 * len(self.seen) * 0.1
        )

    def step(self, memory: Memory) -> float:
        self.seen[f"x:{memory[X]} y:{memory[Y]} m:{memory[MAP]}"] = 1
        self.explored[in_the_world(memory)] = 255
        now = health(memory)
        if now > self.last_health and memory[PARTY_SIZE] == self.party_size:
            if self.last_health > 0:
                self.healing += now - self.last_health
            else:
                self.deaths += 1
        self.party_size = memory[PARTY_SIZE]
        before, self.total = self.total, self.score(memory)
        self.last_health = now
        return self.total - before

    def around(self, memory: Memory) -> list[list[int]]:
        row, column = in_the_world(memory)
        around = self.explored[row - 12 : row + 12, column - 12 : column + 12]
        return [[int(around[r // 2, c // 2]) for c in range(48)] for r in range(48)]


def test_rewards_and_every_part_are_theirs() -> None:
    moments = script(np.random.default_rng(11))
    actions = np.random.default_rng(12).integers(7, size=STEPS).tolist()
    ours, theirs = played("pokemon_red_nerorl", moments, actions), Theirs(moments[0].memory)
    latest = [0, 0, 0]
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        memory = moment.memory
        if step:
            assert ours.rewards[step - 1] == pytest.approx(theirs.step(memory), abs=1e-9), step
            latest = [actions[step - 1] + 1, *latest[:2]]
        total = 0.02 * sum(memory[a] for a in LEVELS)
        numbers = [health(memory), *(math.sin(total * 2**k) for k in range(8))]
        np.testing.assert_allclose(seen["game_state"][:9], numbers, rtol=0, atol=1e-6)
        badges = [int(bit) for bit in f"{memory[BADGES]:08b}"]
        assert highest_first(seen["game_state"][9:]) == badges
        events = [int(bit) for a in EVENTS for bit in f"{memory[a]:08b}"]
        assert highest_first(seen["events"]) == events
        assert (255 * seen["map"][0]).tolist() == theirs.around(memory), step
        assert seen["recent_actions"].tolist()[::-1] == latest
        halves = ours.screens[step][:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], np.ceil(halves))
    assert not any(terminated or truncated for terminated, truncated in ours.ends)
    # so that all terms were compared
    assert min(theirs.most_events, theirs.deaths, theirs.most_opponent, len(theirs.seen)) > 3
    assert min(theirs.most_level - 22, theirs.healing) > 3


def test_actions_and_episodes_are_theirs() -> None:
    names = ("down", "left", "right", "up", "a", "b", "start")
    assert game_of("pokemon_red_nerorl").action_names == names
    assert run_of("pokemon_red_nerorl").env.max_episode_timesteps == 81_920
