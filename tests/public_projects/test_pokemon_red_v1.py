"""examples/pokemon_red_v1, beside a plain computation after PokemonRedExperiments' v1."""

import numpy as np
import pytest

from tests.public_projects.scripted import Memory, Moment, game_of, played, run_of

LEVELS = [0xD18C, 0xD1B8, 0xD1E4, 0xD210, 0xD23C, 0xD268]
OPPONENTS = [0xD8C5, 0xD8F1, 0xD91D, 0xD949, 0xD975, 0xD9A1]
HP = [0xD16C, 0xD198, 0xD1C4, 0xD1F0, 0xD21C, 0xD248]
MAX_HP = [0xD18D, 0xD1B9, 0xD1E5, 0xD211, 0xD23D, 0xD269]
EVENTS = range(0xD747, 0xD886)
PARTY_SIZE, BADGES, MAP, Y, X = 0xD163, 0xD356, 0xD35E, 0xD361, 0xD362
STEPS = 1_000


def script(random: np.random.Generator) -> list[Moment]:
    """A party that grows by and by, wanders, faints and heals."""
    memory = dict.fromkeys([*LEVELS, *OPPONENTS, *EVENTS, BADGES], 0)
    memory |= {address + low: 0 for address in (*HP, *MAX_HP) for low in (0, 1)}
    memory |= {MAP: 40, X: 50, Y: 60, PARTY_SIZE: 1, LEVELS[0]: 6, MAX_HP[0] + 1: 20, HP[0] + 1: 15}
    memory |= {0xD747: 0xFF, 0xD748: 0x1F}  # 13 events
    found = [Moment(dict(memory))]
    for step in range(STEPS):
        axis = int(random.choice([X, Y]))
        memory[axis] += int(random.integers(-1, 2))
        if random.random() < 0.02:
            memory[MAP] = int(random.integers(250))
        if random.random() < 0.01:
            memory[PARTY_SIZE] = min(6, memory[PARTY_SIZE] + 1)
        for place in range(memory[PARTY_SIZE]):
            if memory[LEVELS[place]] == 0 or random.random() < 0.02:
                memory[LEVELS[place]] = max(3, memory[LEVELS[place]] + int(random.integers(-1, 3)))
            most = 10 + 40 * memory[LEVELS[place]]
            memory[MAX_HP[place]], memory[MAX_HP[place] + 1] = divmod(most, 256)
            left = int(random.choice([0, 0, most, int(random.integers(most + 1))]))
            memory[HP[place]], memory[HP[place] + 1] = divmod(left, 256)
        memory[int(random.choice(OPPONENTS))] = int(random.integers(4 + step // 20))
        if random.random() < 0.2:
            memory[int(random.choice(EVENTS[2:]))] ^= 1 << int(random.integers(8))
        if random.random() < 0.02:
            memory[BADGES] ^= 1 << int(random.integers(8))
        found.append(Moment(dict(memory)))
    return found


def bits(values: list[int]) -> int:
    return sum(bin(value).count("1") for value in values)


def health(memory: Memory) -> float:
    total = [256 * memory[a] + memory[a + 1] for a in HP]
    most = [256 * memory[a] + memory[a + 1] for a in MAX_HP]
    return sum(total) / max(1, sum(most))


class Theirs:
    def __init__(self, memory: Memory) -> None:
        self.most_events = self.most_opponent = self.deaths = 0
        self.most_level = self.healing = 0.0
        self.last_health, self.party_size = 1.0, 0
        self.seen: dict[str, int] = {}
        self.is_satisfied, self.base = False, 0
        self.total = self.score(memory)

    def level_sum(self, memory: Memory) -> int:
        return max(sum(max(memory[a] - 2, 0) for a in LEVELS) - 4, 0)

    def score(self, memory: Memory) -> float:
        events = bits([memory[a] for a in EVENTS]) - 13 - (memory[0xD754] & 1)
        self.most_events = max(self.most_events, events, 0)
        level: float = self.level_sum(memory)
        if level >= 22:
            level = (level - 22) / 4 + 22
        self.most_level = max(self.most_level, level)
        self.most_opponent = max(self.most_opponent, max(memory[a] for a in OPPONENTS) - 5)
        before = self.base if self.is_satisfied else len(self.seen)
        after = len(self.seen) if self.is_satisfied else 0
        scores = {
            "event": 4 * self.most_events,
            "level": 4 * self.most_level,
            "heal": 4 * self.healing,
            "op_lvl": 4 * self.most_opponent * 0.2,
            "dead": 4 * -0.1 * self.deaths,
            "badge": 4 * bits([memory[BADGES]]) * 5,
            "explore": 4 * (before * 3 * 0.005 + after * 3 * 0.01),
        }
        return sum(scores.values())

    def step(self, memory: Memory) -> float:
        if self.level_sum(memory) >= 22 and not self.is_satisfied:
            self.is_satisfied, self.base = True, len(self.seen)
            self.seen = {}
        self.seen[f"x:{memory[X]} y:{memory[Y]} m:{memory[MAP]}"] = 1
        now = health(memory)
        if now > self.last_health and memory[PARTY_SIZE] == self.party_size:
            if self.last_health > 0:
                self.healing += (now - self.last_health) * 4
            else:
                self.deaths += 1
        self.party_size = memory[PARTY_SIZE]
        before, self.total = self.total, self.score(memory)
        self.last_health = now
        return 0.1 * (self.total - before)


@pytest.mark.slow
def test_rewards_and_the_part_are_theirs() -> None:
    moments = script(np.random.default_rng(3))
    actions = np.random.default_rng(4).integers(6, size=STEPS).tolist()
    ours, theirs = played("pokemon_red_v1", moments, actions), Theirs(moments[0].memory)
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        memory = moment.memory
        if step:
            reward = theirs.step(memory)
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=1e-9), step
        levels = 0.01 * sum(memory[a] for a in LEVELS)
        badges = [int(bit) for bit in f"{memory[BADGES]:08b}"[::-1]]
        np.testing.assert_allclose(seen["progress"], [health(memory), levels, *badges], atol=1e-6)
        halves = ours.screens[step][:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], np.ceil(halves))
    assert not any(terminated or truncated for terminated, truncated in ours.ends)
    # so that all terms were compared
    assert theirs.is_satisfied
    assert min(theirs.base, len(theirs.seen), theirs.most_events, theirs.deaths) > 3
    assert min(theirs.most_level - 22, theirs.healing, theirs.most_opponent) > 3


def test_buttons_and_episodes_are_theirs() -> None:
    env = run_of("pokemon_red_v1").env
    # their env ends an episode after the timestep that begins with max_steps behind it
    assert env.max_episode_timesteps == next(n + 1 for n in range(10**6) if n >= 2_048 * 10)
    game = game_of("pokemon_red_v1")
    assert game.action_names == ("down", "left", "right", "up", "a", "b")
    moment = script(np.random.default_rng(0))[0]
    for name, presses in zip(
        game.action_names, played("pokemon_red_v1", [moment] * 7, range(6)).presses, strict=True
    ):
        assert [(tuple(press.buttons), press.frames) for press in presses] == [
            ((name,), 8),
            ((), 16),
        ]
