"""examples/pokemon_red_kantorl, beside a plain computation after KantoRL."""

import math
from typing import Any

import numpy as np
import pytest
import yaml

from tests.public_projects.scripted import EXAMPLES, Memory, Moment, game_of, played, run_of

MAP, Y, X, BADGES, PARTY = 0xD35E, 0xD361, 0xD362, 0xD356, 0xD163
RECORDS = [0xD16B + 44 * place for place in range(6)]  # HP at 1, level at 33, maximum at 34
EVENTS = range(0xD747, 0xD747 + 312)
WORLD = yaml.safe_load((EXAMPLES / "pokemon_red_kantorl" / "maps.yaml").read_text("utf-8"))["maps"]
STEPS = 1_400


def script(random: np.random.Generator) -> list[Moment]:
    """A player who wanders, stands still for long, heals, and gets on."""
    memory = dict.fromkeys([*range(RECORDS[0], RECORDS[5] + 44), *EVENTS, BADGES], 0)
    memory |= {MAP: 40, X: 5, Y: 6, PARTY: 1, BADGES: 1, EVENTS[5]: 0b101}
    found = [Moment(dict(memory))]
    for step in range(STEPS):
        if not 300 <= step < 900:  # without any progress in between
            _move(memory, random)
            _grow(memory, random)
        found.append(Moment(dict(memory)))
    return found


def _move(memory: Memory, random: np.random.Generator) -> None:
    if random.random() < 0.05:
        memory |= {MAP: int(random.choice([0, 12, 1, 40, 37])), X: 5, Y: 6}
    axis = int(random.choice([X, Y]))
    memory[axis] = max(0, memory[axis] + int(random.integers(-1, 2)))


def _grow(memory: Memory, random: np.random.Generator) -> None:
    if random.random() < 0.2:
        memory[int(random.choice(EVENTS))] ^= 1 << int(random.integers(8))
    if random.random() < 0.03:
        memory[BADGES] ^= 1 << int(random.integers(8))
    if random.random() < 0.05:
        memory[PARTY] = int(random.choice([0, 1, 1, 2, 6, 7]))
    for record in RECORDS[: memory[PARTY]]:
        most = int(random.integers(300))
        now = int(random.integers(most + 1)) if random.random() < 0.8 else 0
        memory[record + 1], memory[record + 2] = divmod(now, 256)
        memory[record + 34], memory[record + 35] = divmod(most, 256)
        memory[record + 33] = int(random.integers(2, 60))
        memory[record + 4] = int(random.choice([0, 0, 8]))


def low_first(memory: Memory, address: int) -> int:
    return memory[address] + 256 * memory[address + 1]


class Theirs:
    def __init__(self) -> None:
        self.coordinates: set[tuple[int, int, int]] = set()
        self.maps: set[int] = set()
        self.most_events = self.most_badges = self.without_progress = self.stuck = 0
        self.earlier: Memory | None = None
        self.healed = 0.0

    @staticmethod
    def hp(memory: Memory) -> tuple[int, int]:
        places = range(min(memory[PARTY], 6))
        now = sum(low_first(memory, 0xD16C + 2 * place) for place in places)
        return now, sum(low_first(memory, 0xD18D + 2 * place) for place in places)

    def reward(self, memory: Memory) -> float:
        terms = []
        events = sum(bin(memory[address]).count("1") for address in EVENTS)
        if events > self.most_events:
            terms.append(0.5 * (events - self.most_events) * 8.0)
            self.most_events = events
        now, most = self.hp(memory)
        if self.earlier is not None and most > 0:
            before, most_before = self.hp(self.earlier)
            before_ratio = before / most_before if most_before > 0 else 0
            if now / most > before_ratio:
                terms.append(0.5 * (now / most - before_ratio) * 10.0)
                self.healed += terms[-1]
        badges = bin(memory[BADGES]).count("1")
        if badges > self.most_badges:
            terms.append(0.5 * (badges - self.most_badges) * 10.0)
            self.most_badges = badges
        coordinate = memory[MAP], memory[X], memory[Y]
        if coordinate not in self.coordinates:
            self.coordinates.add(coordinate)
            terms.append(0.5 * 0.3 * 0.1)
        if memory[MAP] not in self.maps:
            self.maps.add(memory[MAP])
            terms.append(0.5 * 2.0)
        self.without_progress = 0 if any(term > 0 for term in terms) else self.without_progress + 1
        if self.without_progress > 500:
            terms.append(0.5 * -0.05)
            self.stuck += 1
        self.earlier = memory
        return sum(terms)


def expected_parts(memory: Memory) -> dict[str, Any]:
    """Theirs, but with the six records of the party; a difference that the README names."""
    hp, most, levels = 0, 0, 0
    for record in RECORDS:
        hp += 256 * memory[record + 1] + memory[record + 2]
        most += 256 * memory[record + 34] + memory[record + 35]
        levels += memory[record + 33]
    average = levels / memory[PARTY] / 100 if memory[PARTY] else 0.0
    return {
        "health": [hp / max(most, 1)],
        "level": [math.sin(2 * math.pi * k * average) for k in (1, 2, 3, 4)],
        "badges": [memory[BADGES] >> bit & 1 for bit in range(8)],
        "events": [memory[address] >> bit & 1 for address in EVENTS for bit in range(8)],
    }


def around(memory: Memory, visited: set[tuple[int, int, int]]) -> list[list[int]]:
    """Visited places of the same world, 24 to the left of the player to 23 to the right."""

    def located(place: tuple[int, int, int]) -> tuple[int, int, int]:
        left, top = WORLD.get(place[0], (0, 0))
        return (-1 if place[0] in WORLD else place[0]), place[1] + left, place[2] + top

    world, x, y = located((memory[MAP], memory[X], memory[Y]))
    seen = {located(place) for place in visited}
    rows, columns = range(y - 24, y + 24), range(x - 24, x + 24)
    return [[int((world, column, row) in seen) for column in columns] for row in rows]


@pytest.mark.slow
def test_rewards_and_every_part_are_theirs() -> None:
    moments = script(np.random.default_rng(3))
    actions = np.random.default_rng(4).integers(8, size=STEPS).tolist()
    ours, theirs = played("pokemon_red_kantorl", moments, actions), Theirs()
    latest, visited = [0, 0, 0], set[tuple[int, int, int]]()
    assert set(ours.observations[0]) == {
        "screen",
        *run_of("pokemon_red_kantorl").env.observation.parts,
    }
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        memory = moment.memory
        visited.add((memory[MAP], memory[X], memory[Y]))
        if step:
            reward = theirs.reward(memory)
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=1e-9), step
            latest = [*latest[1:], actions[step - 1] + 1]
        for name, expected in expected_parts(memory).items():
            np.testing.assert_allclose(seen[name], expected, rtol=0, atol=1e-5, err_msg=name)
        assert seen["recent_actions"].tolist() == latest
        halves = ours.screens[step][:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], np.ceil(halves))
        if step % 10 == 0:
            assert seen["visited"][0].tolist() == around(memory, visited), step
    assert not any(terminated or truncated for terminated, truncated in ours.ends)
    # so that all terms were compared
    assert min(theirs.most_events, theirs.most_badges, theirs.stuck, len(theirs.maps)) > 3
    assert theirs.healed > 10
    assert len(theirs.coordinates) > 50


def test_the_two_ways_to_read_hp_agree_for_a_party_of_one() -> None:
    """With less than 256 HP, so that the order of the two bytes does not matter."""
    memory = dict.fromkeys(range(RECORDS[0], RECORDS[5] + 44), 0)
    memory |= {PARTY: 1, BADGES: 0, RECORDS[0] + 2: 30, RECORDS[0] + 35: 40}
    memory |= dict.fromkeys(EVENTS, 0)
    now, most = Theirs.hp(memory)
    assert expected_parts(memory)["health"] == [now / most] == [0.75]


def test_buttons_and_episodes_are_theirs() -> None:
    names = ("none", "up", "down", "left", "right", "a", "b", "start")
    assert game_of("pokemon_red_kantorl").action_names == names
    assert run_of("pokemon_red_kantorl").env.max_episode_timesteps == 2_048 * 80
    moments = script(np.random.default_rng(3))[:9]
    for name, presses in zip(
        names, played("pokemon_red_kantorl", moments, range(8)).presses, strict=True
    ):
        frames = [(tuple(press.buttons), press.frames) for press in presses]
        assert frames == ([((), 24)] if name == "none" else [((name,), 8), ((), 16)])
