"""Beacon, played: its rules, its map, how hard it is, and that it can be finished."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import numpy as np
import pytest

from tests.games.beacon_player import (
    FULL_LIGHT,
    PARTS,
    Beacon,
    Cells,
    ScriptedPlayer,
    random_player,
)

RUNNING, WON, LOST = range(3)
CRAB, BAT, GHOST = 1, 2, 3
PART_NUMBERS = dict(zip(PARTS, (1, 2, 3), strict=True))
FIRST_ROOMS = dict(zip(PARTS, (21, 13, 6), strict=True))
DOOR, WALL = 0xA0, 0x80
PAUSE_FRAMES = 24
every_part = pytest.mark.parametrize("part", PARTS)


@pytest.fixture
def beacon() -> Iterator[Beacon]:
    with closing(Beacon()) as console:
        yield console


def put(beacon: Beacon, x: int, y: int) -> None:
    beacon["player_x"], beacon["player_y"] = x, y


def put_creature(beacon: Beacon, kind: int, x: int, y: int) -> None:
    """The first creature stands there and does not think for a while."""
    beacon["creature_1_kind"], beacon["creature_1_x"], beacon["creature_1_y"] = kind, x, y
    for name, value in (("dx", 0), ("dy", 0), ("timer", 200), ("dazzled", 0)):
        beacon.pyboy.memory[beacon.symbols[f"_creature_1_{name}"]] = value


def poke(beacon: Beacon, symbol: str, value: int) -> None:
    beacon.pyboy.memory[beacon.symbols[symbol]] = value


def go(beacon: Beacon, part: str, room: int, place: tuple[int, int]) -> None:
    """Begins the part, and enters `room` at `place`, beside its left or right edge."""
    beacon.begin(part, 1)
    beacon.enter(room, place[1], by="left" if place[0] > 80 else "right")
    assert beacon["room"] == room


def trace(beacon: Beacon, part: str, seed: int, timesteps: int) -> list[tuple[int, ...]]:
    """Every variable at every timestep, under buttons that do not depend on the game."""
    beacon.begin(part, seed)
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(timesteps):
        beacon.step(random_player(beacon, rng))
        rows.append(tuple(beacon[name] for name in beacon.game["variables"]))
    return rows


def walk(beacon: Beacon, seed: int, *parts: str) -> list[tuple[int, Cells, int]]:
    """Room, cells and item, whenever a room has been on the screen for eight timesteps."""
    beacon.begin(parts[0], seed)
    player, rng = ScriptedPlayer(*parts), np.random.default_rng(0)
    found: list[tuple[int, Cells, int]] = []
    in_room = before = 0
    for _ in range(3_000):
        beacon["lives"] = 5
        beacon.step(player(beacon, rng))
        in_room = in_room + 1 if beacon["room"] == before else 0
        before = beacon["room"]
        if in_room == 8:
            found.append((before, beacon.cells(), beacon["item"]))
        if beacon["result"] != RUNNING:
            return found
    pytest.fail("the game was not finished")


# --- the way into the game, and out of it ---


@every_part
def test_start_state_is_the_beginning_of_its_part_before_any_chance(
    beacon: Beacon, part: str
) -> None:
    beacon.begin(part, 1)
    number = PART_NUMBERS[part]
    assert (beacon["part"], beacon["room"]) == (number, FIRST_ROOMS[part])
    assert beacon["keys"] == beacon["doors"] == 2 * (number - 1)
    assert beacon["keys_taken"] == beacon["doors_open"] == 2 ** (2 * (number - 1)) - 1
    assert (beacon["lives"], beacon["light"], beacon["result"]) == (5, FULL_LIGHT, RUNNING)
    for i in (1, 2, 3):
        assert beacon.pyboy.memory[beacon.symbols[f"_creature_{i}_timer"]] == 1
    place = beacon["player_x"], beacon["player_y"]
    beacon.hold(["up"])
    beacon.run(6)
    assert (beacon["player_x"], beacon["player_y"]) == (place[0], place[1] - 9)


def test_the_lamp_ends_the_game_at_once_and_the_result_stays_until_start(beacon: Beacon) -> None:
    go(beacon, "lighthouse", 2, (8, 80))
    beacon["hurt_frames"] = 90
    put(beacon, 106, 72)
    beacon.hold(["right"])
    for _ in range(4):
        beacon.run(1)
    assert beacon["result"] == WON
    beacon.hold([])
    beacon.run(300)
    assert beacon["result"] == WON
    beacon.run_script([{"hold": ["start"], "frames": 4}, {"wait": 30}])
    assert beacon["result"] == RUNNING
    beacon.run_script([{"hold": ["start"], "frames": 4}, {"wait": 12}])
    beacon.run_script([{"hold": ["start"], "frames": 4}, {"wait": 30}])
    assert (beacon["room"], beacon["keys"], beacon["doors"], beacon["lives"]) == (6, 4, 4, 5)


def test_the_last_life_ends_the_game_at_once_and_the_result_stays(beacon: Beacon) -> None:
    beacon.begin("caves", 1)
    beacon["lives"] = 1
    put_creature(beacon, BAT, 80, 124)
    while beacon["lives"]:
        assert beacon["result"] == RUNNING
        beacon.run(1)
    assert beacon["result"] == LOST
    beacon.run(300)
    assert beacon["result"] == LOST


# --- walking ---


def test_the_keeper_walks_three_pixels_in_two_frames(beacon: Beacon) -> None:
    for button, name, sign in (("left", "x", -1), ("right", "x", 1), ("up", "y", -1)):
        beacon.begin("shore", 1)
        before = beacon[f"player_{name}"]
        beacon.hold([button])
        beacon.run(20)
        assert beacon[f"player_{name}"] == before + sign * 30


def test_walls_stop_the_keeper_and_corners_do_not(beacon: Beacon) -> None:
    beacon.begin("shore", 1)
    put(beacon, 30, 120)
    beacon.hold(["left"])
    beacon.run(40)
    assert (beacon["player_x"], beacon["player_y"]) == (21, 120)  # a wall up to 15, feet of 5
    put(beacon, 30, 62)  # a foot above the way out, which begins at 64
    beacon.run(40)
    assert beacon["room"] == 20


def test_the_feet_never_stand_in_a_wall(beacon: Beacon) -> None:
    rng = np.random.default_rng(3)
    for part in PARTS:
        beacon.begin(part, 5)
        poke(beacon, "_keys_taken", 0)
        for _ in range(300):
            room = beacon["room"]
            beacon.step(random_player(beacon, rng))
            if beacon["room"] != room:
                beacon.run(16)  # until the new one is there
            x, y, cells = beacon["player_x"], beacon["player_y"], beacon.cells()
            for i, j in ((x - 5, y - 3), (x + 5, y - 3), (x - 5, y + 4), (x + 5, y + 4)):
                assert cells[(j & 0xF0) | (i >> 4)] < WALL


# --- keys, doors, hearts ---


def test_a_key_is_taken_once_and_for_good(beacon: Beacon) -> None:
    go(beacon, "shore", 20, (151, 80))
    assert (beacon["item"], beacon["keys"]) == (1, 0)
    put(beacon, *beacon.item_place())
    beacon.run(2)
    assert (beacon["item"], beacon["keys"], beacon["keys_taken"]) == (0, 1, 1)
    beacon["hurt_frames"] = 90
    put(beacon, 150, 72)
    beacon.hold(["right"])
    beacon.run(20)
    assert beacon["room"] == 21
    beacon.hold(["left"])
    beacon.run(20)
    assert (beacon["room"], beacon["item"], beacon["keys"]) == (20, 0, 1)


@pytest.mark.parametrize("taken", [0b111110, 0b000001])
def test_a_door_opens_to_its_own_key_alone_and_stays_open(beacon: Beacon, taken: int) -> None:
    go(beacon, "shore", 22, (8, 80))
    beacon["keys_taken"] = taken
    for i in (1, 2, 3):
        beacon[f"creature_{i}_kind"] = 0
    assert beacon.cells().count(DOOR) == 2
    put(beacon, 80, 40)
    beacon.hold(["up"])
    beacon.run(10)
    opens = taken == 1
    assert (beacon["doors"], beacon["doors_open"]) == ((1, 1) if opens else (0, 0))
    assert beacon.cells().count(DOOR) == (0 if opens else 2)
    beacon.run(60)
    assert beacon["room"] == (18 if opens else 22)
    if opens:
        beacon.hold(["down"])
        beacon.run(60)
        assert (beacon["room"], beacon.cells().count(DOOR), beacon["doors"]) == (22, 0, 1)


def test_a_heart_gives_back_a_life_that_is_missing(beacon: Beacon) -> None:
    go(beacon, "caves", 14, (8, 80))
    for i in (1, 2, 3):
        beacon[f"creature_{i}_kind"] = 0
    assert beacon["item"] > 6
    put(beacon, *beacon.item_place())
    beacon.run(4)
    assert beacon["lives"] == 5
    assert beacon["item"] > 6
    beacon["lives"] = 3
    beacon.run(4)
    assert (beacon["lives"], beacon["item"]) == (4, 0)


# --- what hurts ---


@pytest.mark.parametrize("kind", [CRAB, BAT, GHOST])
def test_a_creature_costs_a_life_and_sends_the_keeper_to_where_he_came_in(
    beacon: Beacon, kind: int
) -> None:
    go(beacon, "caves", 13, (8, 80))
    entry = 8, 80
    beacon["hurt_frames"] = 0
    put_creature(beacon, kind, 90, 80)
    put(beacon, 89, 80)
    beacon.run(2)
    assert (beacon["lives"], beacon["player_x"]) == (4, 89)
    put_creature(beacon, 0, 0, 0)
    beacon.run(PAUSE_FRAMES + 1)
    assert (beacon["player_x"] - entry[0]) in range(-1, 26)
    assert beacon["player_y"] == entry[1]
    assert beacon["hurt_frames"] > 60
    while beacon["lives"] == 4:
        before = beacon["hurt_frames"]
        put_creature(beacon, kind, beacon["player_x"], beacon["player_y"])
        beacon.run(1)
    assert before == 0  # nothing more could happen until then


@pytest.mark.parametrize(("stage", "lives"), [(0, 5), (1, 5), (2, 4)])
def test_spikes_hurt_when_they_are_up(beacon: Beacon, stage: int, lives: int) -> None:
    go(beacon, "lighthouse", 7, (8, 80))
    for i in (1, 2, 3):
        beacon[f"creature_{i}_kind"] = 0
    beacon["hurt_frames"] = 0
    while beacon["spikes_up"] != stage:
        beacon.run(1)
    put(beacon, 40, 56)
    beacon.run(3)
    assert beacon["lives"] == lives


def test_spikes_warn_before_they_rise(beacon: Beacon) -> None:
    beacon.begin("caves", 1)
    go(beacon, "lighthouse", 7, (8, 80))
    stages = []
    for _ in range(600):
        beacon.run(1)
        stages.append(beacon["spikes_up"])
    changes = [(a, b) for a, b in pairwise(stages) if a != b]
    assert set(changes) == {(0, 1), (1, 2), (2, 0)}
    rises = [i for i in range(1, 600) if (stages[i - 1], stages[i]) == (1, 2)]
    assert all(stages[i - 20 : i] == [1] * 20 for i in rises)


@pytest.mark.parametrize(("distance", "is_reached"), [(0, True), (47, True), (50, False)])
def test_the_lantern_dazzles_who_is_near_and_needs_four_seconds(
    beacon: Beacon, distance: int, is_reached: bool
) -> None:
    beacon.begin("caves", 1)
    put(beacon, 80, 80)
    put_creature(beacon, CRAB, 80 + distance, 80)
    beacon["hurt_frames"] = 2
    beacon.step("shine")
    assert beacon["light"] < 8
    dazzled = beacon.pyboy.memory[beacon.symbols["_creature_1_dazzled"]]
    assert (dazzled > 80) == is_reached
    beacon.hold([])
    if is_reached:
        beacon.run(100)
        assert (beacon["creature_1_x"], beacon["lives"]) == (80 + distance, 5)
    else:
        beacon.run(100)
    put_creature(beacon, 0, 0, 0)
    assert beacon["light"] in range(100, 108)
    beacon.step("shine")
    assert beacon["light"] in range(104, 112)  # not full yet, so it does not shine
    beacon.hold([])
    beacon.run(140)
    assert beacon["light"] == FULL_LIGHT


# --- chance, and the map ---


@every_part
def test_same_state_buttons_and_seed_give_the_same_game_on_any_console(
    beacon: Beacon, part: str
) -> None:
    with closing(Beacon()) as other:
        first, again = trace(beacon, part, 1234, 300), trace(other, part, 1234, 300)
    assert first == again == trace(beacon, part, 1234, 300)


@pytest.mark.parametrize("part", ["caves", "lighthouse"])
def test_another_seed_gives_other_hazards_within_six_seconds(beacon: Beacon, part: str) -> None:
    names = list(beacon.game["variables"])
    assert names[-1] == "rng_seed"
    seeds = (1, 2, 3, 4, 5, 0x8000, 0xFFFF)
    assert len({tuple(row[:-1] for row in trace(beacon, part, seed, 90)) for seed in seeds}) == 7


def test_seed_zero_does_not_stop_the_generator(beacon: Beacon) -> None:
    assert len({row[-1] for row in trace(beacon, "caves", 0, 200)}) > 5


@pytest.mark.slow
def test_another_seed_gives_the_same_map_and_the_way_leads_through_23_rooms(
    beacon: Beacon,
) -> None:
    first, second = walk(beacon, 1, *PARTS), walk(beacon, 999, *PARTS)
    maps = [{room: (cells, item) for room, cells, item in found} for found in (first, second)]
    assert maps[0] == maps[1]
    assert len(maps[0]) == 23  # all but 23, where a heart lies


# --- the screen ---


@every_part
def test_pictures_have_the_four_shades_and_differ(beacon: Beacon, part: str) -> None:
    beacon.begin(part, 5)
    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(60):
        beacon.step(random_player(beacon, rng), render=True)
        pictures.append(beacon.picture())
    assert set(np.unique(pictures)) == {0, 85, 153, 255}
    assert len({picture.tobytes() for picture in pictures}) > 30


def test_video_memory_is_left_alone_while_the_picture_is_drawn(beacon: Beacon) -> None:
    """Copies begin in v-blank and end in it: after each of them the console is still there."""
    entries: list[int] = []
    frames: list[int] = []

    def line(lines: list[int]) -> None:
        lines.append(beacon.pyboy.memory[0xFF44])

    for part in PARTS:
        beacon.begin(part, 1)
        if part == PARTS[0]:
            symbols = beacon.symbols
            beacon.pyboy.hook_register(0, symbols["_flush_video"], line, entries)
            beacon.pyboy.hook_register(0, symbols["_input_read"], line, frames)
        player, rng = ScriptedPlayer(*PARTS[PARTS.index(part) :]), np.random.default_rng(0)
        for _ in range(400):
            beacon.step(player(beacon, rng))
    assert len(frames) > 0.9 * 4_800  # rooms are changed in the rest
    assert min(frames) >= 144
    assert min(entries) >= 144
    assert max(entries) <= 151  # one row takes a line and a half, and 153 is the last
