"""The parts of an episode, beside plain loops over the same memory."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.envs.observation import part_space
from game_rl.envs.observer import EpisodeParts
from game_rl.errors import GameFileError
from game_rl.games.parts.part_spec import PartsState, unused_parts
from game_rl.games.variables import VariableReader
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_GAME_YAML, fake_game, with_folder

VARIABLES = FAKE_GAME_YAML["variables"] | {
    "events": {"address": 0xC010, "type": "bits", "bytes": 3},
    "party": {"addresses": [0xC020, 0xC022, 0xC024]},
    "flag": {"address": 0xC010, "type": "bit", "bit": 1},
    "third": {"bit_of": {"variable": "events", "index": 2}},
    "share": {"ratio": ["health", "x"]},
}
PARTS: dict[str, Any] = {
    "status": {
        "vector": [
            "health",
            "flag",
            "third",
            {"variable": "x", "scale": 0.02, "fourier": 3},
            {"variable": "party", "bits": 8},
            "share",
            {"variable": "party", "scale": -2},
            "events",
        ]
    },
    "species": {"categories": "party", "of": 256, "stack": True},
    "map": {"categories": "frames", "of": 40_000},
    "seen": {
        "tiles": {
            "area": {"x": 2, "y": 3, "width": 18, "height": 15},
            "follow_scroll": True,
            "sprites": True,
            "classes": {"wall": [20, 21, 22], "player": [200, 202], "door": [9]},
        }
    },
    "around": {"visited": {"radius": 3, "size": 12}},
    "recent": {"actions": 3},
    "last": {"actions": 1, "stack": True},
    "hurt": {"recent": {"variable": "health", "timesteps": 5, "scale": 0.5}},
    "healths": {"recent": {"variable": "health", "timesteps": 9}},
    "flags": {"recent": {"variable": "flag", "timesteps": 4}},
    "levels": {"recent": {"variable": "level", "timesteps": 3, "of": 3}},
    "parties": {"recent": {"variable": "party", "timesteps": 2, "of": 256}, "stack": True},
}


def game_with(parts: dict[str, Any] = PARTS, **changes: Any) -> Any:
    return fake_game(variables=VARIABLES, parts=parts, place=["level", "x", "health"], **changes)


def bytes_of(emulator: FakeEmulator, first: int, values: Sequence[int]) -> None:
    for offset, value in enumerate(values):
        emulator.write(first + offset, value)


def played(
    parts: EpisodeParts, emulator: FakeEmulator, actions: Sequence[int], random: np.random.Generator
) -> tuple[list[dict[int, int]], list[dict[str, Any]]]:
    """What was in memory after each timestep, and the parts then."""
    reader = VariableReader(game_with().variables, game_with().definition.variables)
    memories, found = [], []
    for step, action in enumerate((None, *actions)):
        emulator.tick(1, render=False)
        emulator.write(fake.X, int(random.integers(70, 76)))
        emulator.write(fake.HEALTH, int(random.integers(0, 5)))
        emulator.write(fake.LEVEL, int(random.integers(1, 3)))
        bytes_of(emulator, 0xC010, random.integers(0, 256, 3).tolist())
        bytes_of(emulator, 0xC020, random.integers(0, 256, 5).tolist())
        values = reader.read(emulator)
        if step == 0:
            parts.reset(values)
        else:
            assert action is not None
            parts.step(values, action)
        memories.append({a: emulator.read(a) for a in range(0xC000, 0xC040)})
        found.append(parts.read(values, emulator))
    return memories, found


def status_by_hand(memory: dict[int, int]) -> list[float]:
    x, health = memory[fake.X], memory[fake.HEALTH]
    events = [memory[0xC010 + i // 8] >> i % 8 & 1 for i in range(24)]
    party = [memory[0xC020], memory[0xC022], memory[0xC024]]
    waves = [math.sin(0.02 * x), math.sin(0.04 * x), math.sin(0.08 * x)]
    bits = [int(bit) for number in party for bit in f"{number:08b}"[::-1]]
    doubled = [-2.0 * number for number in party]
    share = health / x if x else 0
    return [health, events[1], events[2], *waves, *bits, share, *doubled, *events]


def tiles_by_hand(memory: dict[int, int]) -> list[list[int]]:
    """The fake game's own formula of tiles and sprites, cell by cell."""
    x, level, seed, health = (memory[a] for a in (fake.X, fake.LEVEL, fake.SEED, fake.HEALTH))
    kinds = {20: 1, 21: 1, 22: 1, 200: 2, 202: 2, 9: 3}
    grid = [
        [kinds.get(((c + x // 8) % 32 + r * level + seed) % 384, 0) for c in range(2, 20)]
        for r in range(3, 18)
    ]
    for left, top, tile in ((x, 100, 200), (x, 108, 201), (16 * health, 0, 202)):
        row, column = top // 8 - 3, left // 8 - 2
        if tile in kinds and 0 <= row < 15 and 0 <= column < 18:
            grid[row][column] = kinds[tile]
    return grid


def recent_by_hand(name: str, memories: Sequence[dict[int, int]]) -> Sequence[float]:
    """A variable at each timestep of the episode, with zeros for the time before it."""
    if name == "hurt":
        return [0] * 5 + [0.5 * memory[fake.HEALTH] for memory in memories]
    if name == "healths":
        return [0] * 9 + [memory[fake.HEALTH] for memory in memories]
    if name == "flags":
        return [0] * 4 + [memory[0xC010] >> 1 & 1 for memory in memories]
    if name == "levels":
        return [0] * 3 + [memory[fake.LEVEL] + 1 for memory in memories]
    return [0] * 6 + [m[a] + 1 for m in memories for a in (0xC020, 0xC022, 0xC024)]


def around_by_hand(places: list[tuple[int, int, int]]) -> list[list[int]]:
    level, x, y = places[-1]
    return [
        [int((level, x - 3 + column // 2, y - 3 + row // 2) in places) for column in range(12)]
        for row in range(12)
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(0, 3), max_size=12))
def test_every_part_is_what_plain_loops_over_memory_say(seed: int, actions: list[int]) -> None:
    parts = EpisodeParts(game_with(), sorted(PARTS))
    memories, found = played(parts, FakeEmulator(), actions, np.random.default_rng(seed))
    places: list[tuple[int, int, int]] = []
    for step, (memory, values) in enumerate(zip(memories, found, strict=True)):
        places.append((memory[fake.LEVEL], memory[fake.X], memory[fake.HEALTH]))
        status = np.array(status_by_hand(memory), np.float32)
        np.testing.assert_array_equal(values["status"], status)
        party = [memory[0xC020], memory[0xC022], memory[0xC024]]
        assert values["species"].tolist() == party
        assert values["map"].tolist() == [memory[0xC000] | memory[0xC001] << 8]
        assert values["seen"].tolist() == [tiles_by_hand(memory)]
        assert values["around"].tolist() == [around_by_hand(places)]
        latest = [0, 0, 0, *(action + 1 for action in actions[:step])]
        assert values["recent"].tolist() == latest[-3:]
        assert values["last"].tolist() == latest[-1:]
        for name, n in (("hurt", 5), ("healths", 9), ("flags", 4), ("levels", 3), ("parties", 6)):
            assert values[name].tolist() == list(recent_by_hand(name, memories[: step + 1])[-n:])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_each_part_has_its_form_and_comes_back_from_its_bytes(
    seed: int, actions: list[int]
) -> None:
    game = game_with()
    formats = game.definition.part_formats()
    parts = EpisodeParts(game, sorted(PARTS))
    _, found = played(parts, FakeEmulator(), actions, np.random.default_rng(seed))
    for values in found:
        assert values.keys() == formats.keys()
        for name, form in formats.items():
            assert part_space(form, 1).contains(values[name])
            np.testing.assert_array_equal(form.unpack(form.pack(values[name])), values[name])


def test_the_forms_are_known_without_an_emulator() -> None:
    formats = game_with().definition.part_formats()
    shapes = {name: (form.kind, form.shape, form.n_values) for name, form in formats.items()}
    assert shapes == {
        "status": ("vector", (58,), 0),
        "species": ("categories", (3,), 256),
        "map": ("categories", (1,), 40_000),
        "seen": ("grid", (1, 15, 18), 4),
        "around": ("grid", (1, 12, 12), 2),
        "recent": ("categories", (3,), 5),
        "last": ("categories", (1,), 5),
        "hurt": ("vector", (5,), 0),
        "healths": ("vector", (9,), 0),
        "flags": ("vector", (4,), 0),
        "levels": ("categories", (3,), 4),
        "parties": ("categories", (6,), 257),
    }
    stacked = [name for name, form in formats.items() if form.is_stacked]
    assert stacked == ["species", "last", "parties"]


def test_a_flag_takes_a_bit_and_a_number_a_float() -> None:
    events = {"address": 0xC100, "type": "bits", "bytes": 311}
    game = fake_game(
        variables=FAKE_GAME_YAML["variables"] | {"events": events},
        parts={
            "events": {"vector": ["events"]},
            "mixed": {"vector": ["x", {"variable": "x", "bits": 3}, "health"]},
        },
    )
    formats = game.definition.part_formats()
    assert (formats["events"].shape, formats["events"].nbytes) == ((2_488,), 311)
    assert (formats["mixed"].shape, formats["mixed"].nbytes) == ((5,), 4 + 1 + 4)


def test_each_remembered_value_takes_as_many_bits_as_it_has() -> None:
    formats = game_with().definition.part_formats()
    sizes = {name: formats[name].nbytes for name in ("hurt", "flags", "levels", "parties")}
    assert sizes == {"hurt": 5 * 4, "flags": 1, "levels": 1, "parties": 6 * 2}


def test_a_new_episode_remembers_nothing_of_the_one_before() -> None:
    parts = EpisodeParts(game_with(), ["levels"])
    for first in (1, 2):
        parts.reset({"level": first})
        assert parts.read({}, FakeEmulator())["levels"].tolist() == [0, 0, first + 1]
        parts.step({"level": 0}, 1)
        assert parts.read({}, FakeEmulator())["levels"].tolist() == [0, first + 1, 1]


def test_a_remembered_category_that_does_not_fit_names_part_variable_and_way_out() -> None:
    part = {"recent": {"variable": "x", "timesteps": 3, "of": 9}}
    parts = EpisodeParts(game_with({"a": part}), ["a"])
    parts.reset({"x": 9})
    with pytest.raises(GameFileError, match=r"parts\.a\.recent\.of: x is 9, .*0 to 8; .*of"):
        parts.read({"x": 9}, FakeEmulator())


@given(st.integers(0, 2**31), st.integers(0, 6))
@settings(max_examples=15, deadline=None)
def test_saved_parts_go_on_as_the_others_do(seed: int, before: int) -> None:
    one, two = EpisodeParts(game_with(), sorted(PARTS)), EpisodeParts(game_with(), sorted(PARTS))
    emulator = FakeEmulator()
    played(one, emulator, [1] * before, np.random.default_rng(seed))
    state = PartsState.model_validate_json(one.save_state().model_dump_json())
    two.load_state(state)
    assert two.save_state() == state
    reader = VariableReader(game_with().variables, game_with().definition.variables)
    for x in (71, 72, 72):
        emulator.write(fake.X, x)
        values = reader.read(emulator)
        one.step(values, 3)
        two.step(values, 3)
        ours, theirs = one.read(values, emulator), two.read(values, emulator)
        assert {n: a.tolist() for n, a in ours.items()} == {
            n: a.tolist() for n, a in theirs.items()
        }


def test_parts_that_are_not_chosen_are_neither_read_nor_remembered() -> None:
    parts = EpisodeParts(game_with(), ["species"])
    assert parts.variables == {"party"}
    parts.reset({"party": (1, 2, 3)})
    parts.step({"party": (4, 5, 6)}, 2)
    assert parts.save_state() == PartsState()
    assert parts.read({"party": (4, 5, 6)}, FakeEmulator())["species"].tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("part", "party", "says"),
    [
        ({"categories": "party", "of": 9}, (1, 9, 2), r"parts\.a\.of: party is 9, .*0 to 8; .*of"),
        ({"categories": "party", "of": 9}, (1, -1, 2), r"parts\.a\.of: party is -1"),
        (
            {"vector": ["x", {"variable": "party", "bits": 3}]},
            (7, 8, 0),
            r"parts\.a\.vector\.1\.bits: party is 8, .*number of 3 bits; .*`mask`",
        ),
    ],
)
def test_a_value_that_does_not_fit_names_part_variable_and_way_out(
    part: dict[str, Any], party: tuple[int, ...], says: str
) -> None:
    parts = EpisodeParts(game_with({"a": part}), ["a"])
    with pytest.raises(GameFileError, match=says):
        parts.read({"party": party, "x": 1}, FakeEmulator())


def test_offsets_place_maps_beside_each_other(tmp_path: Path) -> None:
    maps = {"maps": {1: [0, 0], 2: [4, -1]}}
    (tmp_path / "maps.yaml").write_text(yaml.safe_dump(maps), encoding="utf-8")
    part = {"around": {"visited": {"radius": 2, "offsets": "maps.yaml"}}}
    parts = EpisodeParts(with_folder(game_with(part), tmp_path), ["around"])
    emulator = FakeEmulator()

    def at(level: int, x: int, health: int) -> dict[str, int]:
        return {"level": level, "x": x, "health": health}

    parts.reset(at(1, 10, 5))  # 10, 5 of the world
    parts.step(at(2, 7, 6), 0)  # 11, 5
    parts.step(at(3, 11, 5), 0)  # a map without an offset
    own = parts.read(at(3, 11, 5), emulator)["around"][0]
    assert np.argwhere(own).tolist() == [[2, 2]]
    world = parts.read(at(2, 7, 6), emulator)["around"][0]
    assert np.argwhere(world).tolist() == [[2, 1], [2, 2]]
    assert parts.read(at(1, 11, 5), emulator)["around"][0].tolist() == world.tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-200, 200), st.integers(-200, 200)), min_size=1, max_size=40),
    st.integers(1, 100),
    st.integers(1, 2),
)
def test_a_window_over_several_sheets_is_what_a_set_of_places_says(
    places: list[tuple[int, int]], radius: int, scale: int
) -> None:
    side = 2 * radius
    part = {"a": {"visited": {"radius": radius, "size": side * scale}}}
    parts = EpisodeParts(game_with(part), ["a"])
    values = [{"level": 1, "x": x, "health": y} for x, y in places]
    parts.reset(values[0])
    for each in values[1:]:
        parts.step(each, 0)
    x, y = places[-1]
    expected = np.zeros((side, side), np.uint8)
    for px, py in places:
        if 0 <= px - x + radius < side and 0 <= py - y + radius < side:
            expected[py - y + radius, px - x + radius] = 1
    found = parts.read(values[-1], FakeEmulator())["a"]
    np.testing.assert_array_equal(found[0], np.kron(expected, np.ones((scale, scale), np.uint8)))


def test_parts_that_no_observation_has_make_no_difference_between_game_files() -> None:
    new = json.loads(game_with().definition.model_dump_json(by_alias=True))
    old = {name: value for name, value in new.items() if name != "parts"}
    parts = tuple(f"parts.{name}" for name in sorted(PARTS))
    shown = ("title", "milestones", "place_offsets", "place_names", "place_screen")
    others = ("cell", "prefer", "place")
    assert unused_parts((), old, new) == (*parts, *shown, *others)
    assert "parts.seen" not in unused_parts(["seen"], old, new)
