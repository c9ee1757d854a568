"""examples/pokemon_red_puffer, beside a plain computation after pokemonred_puffer."""

from typing import Any

import numpy as np
import pytest
import yaml

from tests.public_projects.scripted import EXAMPLES, Memory, Moment, game_of, played, run_of

X, Y, MAP, BADGES, PARTY_SIZE = 0xD362, 0xD361, 0xD35E, 0xD356, 0xD163
JOY_IGNORE, DIRECTION, BATTLE, BLACKOUT, SAFARI = 0xCD6B, 0xC109, 0xD057, 0xD719, 0xD70D
OWNED, SEEN, BAG_SIZE, BAG, SCRIPT = 0xD2F7, 0xD30A, 0xD31D, 0xD31E, 0xD665
STATUS_FLAGS, MISSABLES, EVENTS = 0xD728, 0xD5A6, 0xD747
MONS = [0xD16B + 44 * place for place in range(6)]
REQUIRED_EVENTS = [
    0, 32, 33, 34, 35, 37, 56, 57, 81, 119, 152, 167, 191, 192, 239, 271, 279, 296, 337, 352, 353,
    359, 425, 441, 568, 569, 601, 665, 865, 1089, 1116, 1118, 1231, 1313, 1318, 1328, 1334, 1360,
    1371, 1372, 1373, 1374, 1375, 1401, 1504, 1505, 1701, 1702, 1703, 1856, 1935, 2176, 2273, 2281,
    2289, 2302, 2305, 2311, 2482, 2486, 2488,
]  # fmt: skip
HMS = {196, 197, 198, 199, 200}
REQUIRED_ITEMS = {43, 48, 63, 64, 70, 72, 73, 74, 196, 198, 199}
USEFUL_ITEMS = {62, 60, 61, 6, 45}
BULBASAUR, ODDISH, PIDGEY = 153, 185, 36
SAFARI_CENTER, PEWTER_GYM, SILPH_CO_1F, ROUTE_12, MANSION_1F, REDS_HOUSE = 220, 54, 181, 23, 165, 38
WORLD = yaml.safe_load((EXAMPLES / "pokemon_red_v2" / "maps.yaml").read_text("utf-8"))["maps"]
STEPS = 900


def script(random: np.random.Generator, *, ends: bool = False) -> list[Moment]:
    """A player who wanders, gets flags, items and moves, and changes the party."""
    memory = dict.fromkeys([*range(MONS[0], MONS[5] + 44), *range(0xD2F7, 0xD400)], 0)
    memory |= dict.fromkeys([*range(MISSABLES, MISSABLES + 32), *range(0xD700, 0xD890)], 0)
    memory |= {JOY_IGNORE: 0, DIRECTION: 0, BATTLE: 0, SCRIPT: 0, X: 5, Y: 6, MAP: REDS_HOUSE}
    memory |= {PARTY_SIZE: 1, MONS[0]: BULBASAUR, MONS[0] + 33: 6, EVENTS + 4: 0b100}
    found = [Moment(dict(memory))]
    for _ in range(STEPS):
        axis = int(random.choice([X, Y]))
        memory[axis] = max(0, memory[axis] + int(random.integers(-1, 2)))
        if random.random() < 0.1:
            maps = [SAFARI_CENTER, PEWTER_GYM, SILPH_CO_1F, ROUTE_12, MANSION_1F, REDS_HOUSE, 0]
            memory |= {MAP: int(random.choice(maps)), X: 5, Y: 6}
            memory[SAFARI], memory[SAFARI + 1] = divmod(int(random.integers(503)), 256)
        memory[DIRECTION] = int(random.choice([0, 4, 8, 12]))
        memory[BATTLE] = int(random.choice([0, 0, 0, 1, 2, 255]))
        memory[BLACKOUT] = int(random.integers(12))
        _progress(memory, random)
        _party(memory, random)
        found.append(Moment(dict(memory)))
    if ends:
        found[-1].memory.update({PARTY_SIZE: 2, MONS[0]: PIDGEY, MONS[1]: PIDGEY, MONS[2]: ODDISH})
    return found


def _progress(memory: Memory, random: np.random.Generator) -> None:
    if random.random() < 0.3:
        flag = int(random.choice([*REQUIRED_EVENTS, 1167, 1225]))
        memory[EVENTS + flag // 8] ^= 1 << flag % 8
    if random.random() < 0.1:
        start, n_bits = [(OWNED, 152), (SEEN, 152), (BADGES, 8)][int(random.integers(3))]
        bit = int(random.integers(n_bits))
        memory[start + bit // 8] ^= 1 << bit % 8
    if random.random() < 0.1:
        memory[STATUS_FLAGS] ^= 0b0100_0000
        memory[SCRIPT] = int(random.integers(5))
    if random.random() < 0.1:
        memory[STATUS_FLAGS + 6] ^= 1
        memory[MISSABLES + 70 // 8] ^= 1 << 70 % 8
        memory[MISSABLES + 194 // 8] ^= 1 << 194 % 8
    if random.random() < 0.2:
        place = int(random.integers(20))
        items = [*HMS, *REQUIRED_ITEMS, *USEFUL_ITEMS, 4, 255]
        memory[BAG + 2 * place] = int(random.choice(items))
        memory[BAG + 2 * place + 1] = int(random.integers(100))
        memory[BAG_SIZE] = int(random.integers(21))


def _party(memory: Memory, random: np.random.Generator) -> None:
    if random.random() < 0.1:
        memory[PARTY_SIZE] = int(random.integers(1, 7))
        for mon in MONS[1:]:
            memory[mon] = int(random.choice([PIDGEY, ODDISH]))
            memory[mon + 33] = int(random.integers(2, 9))
    if random.random() < 0.1:
        mon = int(random.choice(MONS))
        memory[mon + 8 + int(random.integers(4))] = int(random.integers(165))
        for offset in (1, 34, 36, 38, 40, 42):
            memory[mon + offset], memory[mon + offset + 1] = divmod(int(random.integers(715)), 256)
        memory[mon + 4] = int(random.choice([0, 8, 64]))
        memory[mon + 5], memory[mon + 6] = int(random.integers(27)), int(random.integers(27))


class Theirs:
    """Their score, whose change is the reward; without what hooks count."""

    def __init__(self, memory: Memory) -> None:
        self.base_event_flags = sum(memory[EVENTS + i].bit_count() for i in range(320))
        self.max_event = self.max_level_sum = 0
        self.moves: set[int] = set()
        self.explore: dict[tuple[int, int, int], float] = {}
        self.safari: dict[int, int] = {}
        self.earlier = memory
        self.total = sum(self.terms(memory).values())
        self.largest: dict[str, float] = {}

    def terms(self, memory: Memory) -> dict[str, float]:
        events = sum(memory[EVENTS + i].bit_count() for i in range(320))
        events -= self.base_event_flags + (memory[EVENTS + 13] & 1)
        self.max_event = max(self.max_event, events)
        size = memory[PARTY_SIZE]
        self.max_level_sum = max(self.max_level_sum, sum(memory[mon + 33] for mon in MONS[:size]))
        for mon in MONS[:size]:
            self.moves |= {memory[mon + 8 + i] for i in range(4)}
        items = {memory[BAG + 2 * i] for i in range(memory[BAG_SIZE])}
        levels: float = self.max_level_sum
        if levels >= 15:
            levels = 15 + (levels - 15) / 4
        required = sum(event(memory, index) for index in REQUIRED_EVENTS)
        required += (memory[SCRIPT] == 4) + missable(memory, 70)
        required += (memory[STATUS_FLAGS] >> 6 & 1) + (memory[STATUS_FLAGS + 6] & 1)
        return {
            "event": 0.7267916798591614 * self.max_event,
            "seen": 2.1898984909057617 * sum(memory[SEEN + i].bit_count() for i in range(19)),
            "caught": 3.076385498046875 * sum(memory[OWNED + i].bit_count() for i in range(19)),
            "moves": 4.091134548187256 * len(self.moves),
            "hms": 8.083643913269043 * len(HMS & items),
            "level": 1.098945999145508 * levels,
            "badges": 1.9426719546318056 * memory[BADGES].bit_count(),
            "required": 7.134671688079834 * required,
            "required items": 3.3519155979156494 * len(REQUIRED_ITEMS & items),
            "useful items": 1.3436599969863892 * len(USEFUL_ITEMS & items),
            "exploration": 0.02902716636657715 * sum(self.explore.values()),
            "safari": 10.2822847366333 * sum(self.safari.values()) / 502.0,
        }

    def step(self, memory: Memory) -> tuple[float, bool]:
        """Return the reward, and whether the episode is over."""
        if self.earlier[MAP] == SAFARI_CENTER:
            steps = 256 * self.earlier[SAFARI] + self.earlier[SAFARI + 1]
            self.safari[SAFARI_CENTER] = max(self.safari.get(SAFARI_CENTER, 0), steps)
        scale = 9.539340019226074 if is_unfinished(memory[MAP], self.earlier) else 1.0
        self.explore[memory[X], memory[Y], memory[MAP]] = scale
        self.earlier = memory
        terms = self.terms(memory)
        for name, value in terms.items():
            self.largest[name] = max(value, self.largest.get(name, 0.0))
        before, self.total = self.total, sum(terms.values())
        can_cut = any(memory[mon] in (BULBASAUR, ODDISH) for mon in MONS[: memory[PARTY_SIZE]])
        return (self.total - before, False) if can_cut else (-0.5 * self.total, True)


def event(memory: Memory, index: int) -> int:
    return memory[EVENTS + index // 8] >> index % 8 & 1


def missable(memory: Memory, index: int) -> int:
    return memory[MISSABLES + index // 8] >> index % 8 & 1


def is_unfinished(map_id: int, memory: Memory) -> bool:
    """Whether their table has the map, for those that the script comes to."""
    lapras = memory[STATUS_FLAGS + 6] & 1
    match map_id:
        case 54:  # PEWTER_GYM
            return not event(memory, 119)
        case 181:  # SILPH_CO_1F
            return not (lapras and event(memory, 1935))
        case 23:  # ROUTE_12
            return bool(event(memory, 865) and lapras and not event(memory, 1167))
        case 165:  # POKEMON_MANSION_1F
            return not missable(memory, 194)
        case 220:  # SAFARI_ZONE_CENTER
            return not (event(memory, 2176) and missable(memory, 204))
    return False


def of_all(memory: Memory, offset: int) -> list[int]:
    return [memory[mon + offset] for mon in MONS]


def words(memory: Memory, offset: int) -> list[float]:
    """As the game has them, over 714; a difference that the README names."""
    return [(256 * memory[mon + offset] + memory[mon + offset + 1]) / 714 for mon in MONS]


def expected_parts(memory: Memory) -> dict[str, Any]:
    numbers = [level / 100 for level in of_all(memory, 33)]
    for offset in (1, 34, 36, 38, 40, 42):
        numbers += words(memory, offset)
    safari = 256 * memory[SAFARI] + memory[SAFARI + 1]
    guard, lapras = memory[STATUS_FLAGS] >> 6 & 1, memory[STATUS_FLAGS + 6] & 1
    return {
        "direction": [memory[DIRECTION] // 4],
        "map": [memory[MAP]],
        "blackout_map": [memory[BLACKOUT]],
        "battle": [memory[BATTLE]],
        "bag_items": [memory[BAG + 2 * i] for i in range(20)],
        "bag_quantities": [memory[BAG + 2 * i + 1] / 100 for i in range(20)],
        "species": of_all(memory, 0),
        "status": of_all(memory, 4),
        "type1": of_all(memory, 5),
        "type2": of_all(memory, 6),
        "moves": [memory[mon + 8 + i] for mon in MONS for i in range(4)],
        "party": numbers,
        "events": [event(memory, index) for index in range(2_560)],
        "story": [missable(memory, 70), guard, lapras, memory[SCRIPT] / 4, safari / 502],
    }


def around(memory: Memory, places: set[tuple[int, int, int]]) -> list[list[int]]:
    """Their 10 x 10 places of the world that lie below the screen and its edges."""
    seen = {(x + WORLD[map_id][0], y + WORLD[map_id][1]) for x, y, map_id in places}
    x, y = memory[X] + WORLD[memory[MAP]][0], memory[Y] + WORLD[memory[MAP]][1]
    columns, rows = range(x - 4, x + 6), range(y - 4, y + 6)
    return [[int((column, row) in seen) for column in columns] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True])
def test_rewards_endings_and_every_part_are_theirs(ends: bool) -> None:
    moments = script(np.random.default_rng(17), ends=ends)
    actions = np.random.default_rng(18).integers(7, size=STEPS + 5).tolist()
    ours = played("pokemon_red_puffer", moments, actions[: STEPS + 5 * ends])
    theirs = Theirs(moments[0].memory)
    places = {(moments[0].memory[X], moments[0].memory[Y], moments[0].memory[MAP])}
    assert len(ours.rewards) == STEPS
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        memory = moment.memory
        places.add((memory[X], memory[Y], memory[MAP]))
        if step:
            reward, is_over = theirs.step(memory)
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=1e-6), step
            assert ours.ends[step - 1] == (is_over, False)
            assert is_over == (ends and step == STEPS)
        expected = expected_parts(memory)
        assert set(seen) == {"screen", "visited", *expected}
        for name, values in expected.items():
            np.testing.assert_allclose(seen[name], values, rtol=0, atol=1e-6, err_msg=name)
        if step % 10 == 0:
            assert seen["visited"][0, 2:, 2:].tolist() == around(memory, places), step
    # so that all terms were compared
    assert min(theirs.largest.values()) > 1
    assert {1.0, 9.539340019226074} == set(theirs.explore.values())
    assert set(run_of("pokemon_red_puffer").env.observation.parts) == {"visited", *expected}


def test_a_timestep_waits_for_the_game_by_pressing_a() -> None:
    moments = script(np.random.default_rng(17))[:9]
    presses = played("pokemon_red_puffer", moments, range(7)).presses
    names = ("down", "left", "right", "up", "a", "b", "start")
    assert game_of("pokemon_red_puffer").action_names == names
    for name, found in zip(names, presses, strict=True):
        assert [(tuple(press.buttons), press.frames) for press in found] == [((name,), 8), ((), 16)]
    step = game_of("pokemon_red_puffer").definition.step
    assert step is not None
    assert (step.press, step.at_most_frames) == (("a",), 1_000 * 24)
    assert step.until.holds({"joy_ignore": 0})
    assert not step.until.holds({"joy_ignore": 0xFF})
