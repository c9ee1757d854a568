"""examples/pokemon_red_v2, beside a plain computation after PokemonRedExperiments' v2."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import yaml

from tests.public_projects.scripted import EXAMPLES, Memory, Moment, game_of, played, run_of

LEVELS = [0xD18C, 0xD1B8, 0xD1E4, 0xD210, 0xD23C, 0xD268]
HP = [0xD16C, 0xD198, 0xD1C4, 0xD1F0, 0xD21C, 0xD248]
MAX_HP = [0xD18D, 0xD1B9, 0xD1E5, 0xD211, 0xD23D, 0xD269]
EVENTS = range(0xD747, 0xD87E)
BATTLE, PARTY_SIZE, BADGES, MAP, Y, X = 0xD057, 0xD163, 0xD356, 0xD35E, 0xD361, 0xD362
WORLD = yaml.safe_load((EXAMPLES / "pokemon_red_v2" / "maps.yaml").read_text("utf-8"))["maps"]
STEPS = 1_300
TOLERANCE = 1e-9


def script(random: np.random.Generator) -> list[Moment]:
    """A player who wanders, rests, changes maps, fights, heals, faints and gets on."""
    memory = dict.fromkeys([*LEVELS, *EVENTS, BATTLE, PARTY_SIZE, BADGES], 0)
    memory |= {address + low: 0 for address in (*HP, *MAX_HP) for low in (0, 1)}
    memory |= {MAP: 40, X: 5, Y: 6}
    for address in random.choice(EVENTS, 9):
        memory[int(address)] = 1 << int(random.integers(8))
    memory[0xD754] = 0
    found = [Moment(dict(memory))]
    for step in range(STEPS):
        if 250 <= step < 1_200:
            place = {MAP: 12, X: 10, Y: 11} if random.random() < 0.95 else {MAP: 12, X: 11, Y: 11}
            memory |= place
        elif random.random() < 0.05:
            memory |= {MAP: int(random.choice([0, 12, 1, 40, 37])), X: 5, Y: 6}
        else:
            axis = int(random.choice([X, Y]))
            memory[axis] = max(0, memory[axis] + int(random.integers(-1, 2)))
        if random.random() < 0.1:
            memory[BATTLE] = int(random.choice([0, 0, 0, 0, 0, 0, 0, 0, 1, 2]))
        _party(memory, random)
        if random.random() < 0.2:
            memory[int(random.choice(EVENTS))] ^= 1 << int(random.integers(8))
        if random.random() < 0.02:
            memory[BADGES] ^= 1 << int(random.integers(8))
        found.append(Moment(dict(memory)))
    return found


def _party(memory: Memory, random: np.random.Generator) -> None:
    if random.random() < 0.05:
        memory[PARTY_SIZE] = int(random.integers(1, 7))
        for place in range(6):
            most = int(random.integers(20, 400)) if place < memory[PARTY_SIZE] else 0
            _put(memory, MAX_HP[place], most)
            memory[LEVELS[place]] = int(random.integers(2, 60)) if most else 0
    is_rested, is_down = random.random() < 0.1, random.random() < 0.1
    for now, most in zip(HP, MAX_HP, strict=True):
        top = _two_bytes(memory, most)
        value = top if is_rested else 0 if is_down else int(random.integers(top + 1))
        _put(memory, now, value)


def _put(memory: Memory, address: int, value: int) -> None:
    memory[address], memory[address + 1] = divmod(value, 256)


def _two_bytes(memory: Memory, address: int) -> int:
    return 256 * memory[address] + memory[address + 1]


def health(memory: Memory) -> float:
    most = max(1, sum(_two_bytes(memory, a) for a in MAX_HP))
    return sum(_two_bytes(memory, a) for a in HP) / most


def events_but_ticket(memory: Memory) -> int:
    return sum(bin(memory[a]).count("1") for a in EVENTS) - memory[0xD754] % 2


def in_the_world(memory: Memory) -> tuple[int, int]:
    left, top = WORLD[memory[MAP]]
    return memory[Y] + top + 20, memory[X] + left + 20


class Theirs:
    """Scores as their env sums them up; a timestep's reward is the difference of two sums."""

    def __init__(self, memory: Memory) -> None:
        self.base_events = sum(bin(memory[a]).count("1") for a in EVENTS)
        self.most_events = 0
        self.healing = 0.0
        self.last_health, self.party_size = 1.0, 0
        self.seen: dict[str, int] = {}
        self.explored = np.zeros((484, 476), np.uint8)
        self.explored[in_the_world(memory)] = 255  # a difference that the README names
        self.actions = [0, 0, 0]
        self.total = self.score(memory)

    def score(self, memory: Memory) -> float:
        self.most_events = max(self.most_events, events_but_ticket(memory) - self.base_events)
        is_stuck = self.seen.get(self.key(memory), 0) >= 600
        return (
            0.5 * 4 * self.most_events
            + 0.5 * 10 * self.healing
            + 0.5 * 10 * bin(memory[BADGES]).count("1")
            + 0.5 * 0.25 * 0.1 * len(self.seen)
            - 0.5 * 0.05 * is_stuck
        )

    def key(self, memory: Memory) -> str:
        return f"{memory[X]}/{memory[Y]}/{memory[MAP]}"

    def step(self, memory: Memory) -> float:
        if memory[BATTLE] == 0:
            self.seen[self.key(memory)] = self.seen.get(self.key(memory), 0) + 1
        self.explored[in_the_world(memory)] = 255
        now = health(memory)
        if now > self.last_health and memory[PARTY_SIZE] == self.party_size and self.last_health:
            self.healing += (now - self.last_health) ** 2
        self.party_size = memory[PARTY_SIZE]
        before, self.total = self.total, self.score(memory)
        self.last_health = now
        return self.total - before

    def observation(self, memory: Memory) -> dict[str, Any]:
        row, column = in_the_world(memory)
        around = self.explored[row - 12 : row + 12, column - 12 : column + 12]
        total = 0.02 * sum(memory[a] for a in LEVELS)
        return {
            "health": [health(memory)],
            "level": [math.sin(total * 2**k) for k in range(8)],
            "badges": [int(bit) for bit in f"{memory[BADGES]:08b}"],
            "events": [int(bit) for a in EVENTS for bit in f"{memory[a]:08b}"],
            "map": [[int(around[r // 2, c // 2]) for c in range(48)] for r in range(48)],
        }


def highest_first(bits: Any) -> list[int]:
    """Our bits are the lowest of each byte first."""
    return [int(bit) for byte in np.asarray(bits).reshape(-1, 8) for bit in byte[::-1]]


@pytest.fixture(scope="module")
def moments() -> list[Moment]:
    return script(np.random.default_rng(5))


@pytest.mark.slow
def test_rewards_and_every_part_are_theirs(moments: list[Moment]) -> None:
    actions = np.random.default_rng(6).integers(7, size=STEPS).tolist()
    ours = played("pokemon_red_v2", moments, actions)
    theirs = Theirs(moments[0].memory)
    assert set(ours.observations[0]) == {"screen", *run_of("pokemon_red_v2").env.observation.parts}
    latest = [0, 0, 0]
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        if step:
            reward = theirs.step(moment.memory)
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=TOLERANCE), step
            latest = [actions[step - 1] + 1, *latest[:2]]
        expected = theirs.observation(moment.memory)
        for name in ("health", "level"):
            np.testing.assert_allclose(seen[name], expected[name], rtol=0, atol=1e-6)
        for name in ("badges", "events"):
            assert highest_first(seen[name]) == expected[name], step
        assert (255 * seen["visited"][0]).tolist() == expected["map"], step
        assert seen["recent_actions"].tolist()[::-1] == latest
        _check_screen(seen["screen"], ours.screens[step])
    assert not any(terminated or truncated for terminated, truncated in ours.ends)


def _check_screen(seen: Any, screen: Any) -> None:
    """Half-size pixels, rounded down by them and up by us."""
    halves = screen[:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
    assert seen.shape == (1, 72, 80)
    assert np.array_equal(seen[0], np.ceil(halves))


def test_the_script_has_all_that_earns_something(moments: list[Moment]) -> None:
    """So that the comparison above is one of all terms."""
    theirs, scores = Theirs(moments[0].memory), []
    for moment in moments[1:]:
        theirs.step(moment.memory)
        scores.append((theirs.most_events, theirs.healing, max(theirs.seen.values(), default=0)))
    assert scores[-1][0] > 20
    assert scores[-1][1] > 5
    assert scores[-1][2] > 650
    fainted = [health(a.memory) == 0 < health(b.memory) for a, b in pairwise(moments)]
    assert sum(fainted) > 20


def test_a_button_is_pressed_for_8_of_24_frames(moments: list[Moment]) -> None:
    ours = played("pokemon_red_v2", moments, range(7))
    names = ["down", "left", "right", "up", "a", "b", "start"]
    for name, presses in zip(names, ours.presses, strict=True):
        frames = [(tuple(p.buttons), p.frames) for p in presses]
        assert frames[0] == ((name,), 8)
        assert sum(n for _, n in frames) == 24
        assert not any(buttons for buttons, _ in frames[1:])


def test_episodes_are_cut_off_after_80_times_2048_timesteps() -> None:
    assert run_of("pokemon_red_v2").env.max_episode_timesteps == 80 * 2_048
    assert game_of("pokemon_red_v2").definition.endings == {}


def test_its_reward_goes_on_after_a_save_and_load() -> None:
    game = game_of("pokemon_red_v2")
    reward = game.custom_reward()
    assert reward is not None
    values = {"battle": 0, "map_id": 1, "x": 2, "y": 3, "party_size": 1, "hp_fraction": 0.5}
    reward.reset(values)
    assert reward.step(values) == {"explore": 0.0125, "stuck": 0.0, "heal": 0.0}
    again = reward.renewed()
    healed = values | {"hp_fraction": 1.0}
    assert again.step(healed) == {"explore": 0.0, "stuck": 0.0, "heal": 5 * 0.25}
