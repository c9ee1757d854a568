"""Seasons, played: its rules, its scrolling, its colours, and that each level can be finished."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import load_game
from tests.games.seasons_player import (
    ACTIONS,
    BRAMBLE,
    LEVELS,
    SOLID,
    Seasons,
    episode,
    random_player,
    scripted_player,
)

RUNNING, WON, LOST = range(3)
SNAIL, BEE, PUFF = 1, 2, 3
GROUND = 112
every_level = pytest.mark.parametrize("level", LEVELS)


@pytest.fixture
def seasons() -> Iterator[Seasons]:
    with closing(Seasons()) as console:
        yield console


def poke(seasons: Seasons, symbol: str, *values: int) -> None:
    first = seasons.symbols[symbol]
    for place, value in enumerate(values):
        seasons.pyboy.memory[first + place] = value


def put_creature(seasons: Seasons, kind: int, x: int, y: int) -> None:
    """The first creature is there, walks to the right and does not think for a while."""
    seasons["creature_1_kind"], seasons["creature_1_x"], seasons["creature_1_y"] = kind, x, y
    for name, value in (("dx", 1), ("timer", 200), ("steps", 0), ("home", y)):
        poke(seasons, f"_creature_1_{name}", value)


def trace(seasons: Seasons, level: str, seed: int, timesteps: int) -> list[tuple[int, ...]]:
    """Every variable at every timestep of a player who runs and jumps blindly."""
    seasons.begin(level, seed)
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(timesteps):
        seasons.step(("right", "jump_right")[rng.integers(2)])
        rows.append(tuple(seasons[name] for name in seasons.game["variables"]))
    return rows


@every_level
def test_start_state_is_the_beginning_of_its_level(seasons: Seasons, level: str) -> None:
    seasons.begin(level, 1)
    assert (seasons["level"], seasons["runner_x"]) == (LEVELS.index(level) + 1, 24)
    assert (seasons["runner_y"], seasons["on_ground"], seasons["camera"]) == (GROUND, 1, 0)
    assert (seasons["lives"], seasons["apples"], seasons["result"]) == (3, 0, RUNNING)
    seasons.hold(["right"])
    seasons.run(8)
    assert seasons["runner_x"] == 36


def test_no_action_is_without_effect(seasons: Seasons) -> None:
    places = set()
    for action in ACTIONS:
        seasons.begin("spring", 1)
        for _ in range(3):
            seasons.step(action)
        places.add((seasons["runner_x"], seasons["runner_y"]))
    assert len(places) == len(ACTIONS) == len(seasons.game["actions"])


def test_a_held_button_jumps_higher(seasons: Seasons) -> None:
    tops = []
    for held in (1, 6, 24):
        seasons.begin("spring", 1)
        seasons.hold(["a"])
        heights = []
        for frame in range(60):
            if frame == held:
                seasons.hold([])
            seasons.run(1)
            heights.append(GROUND - seasons["runner_y"])
        tops.append(max(heights))
        assert seasons["runner_y"] == GROUND
    assert tops[0] < tops[1] < tops[2]
    assert tops[2] in range(36, 44)


def test_the_screen_follows_to_the_right_and_never_goes_back(seasons: Seasons) -> None:
    seasons.begin("spring", 1)
    for _ in range(40):
        before = seasons["camera"]
        seasons.step("right")
        # a step may end between the fox's move and the screen's
        assert seasons["camera"] - max(before, seasons["runner_x"] - 64, 0) in (-2, -1, 0)
    camera = seasons["camera"]
    assert camera > 100
    for _ in range(40):
        seasons.step("left")
    assert seasons["camera"] == camera
    assert seasons["runner_x"] == camera + 8


def test_what_is_on_the_screen_is_the_level_wherever_it_scrolls(seasons: Seasons) -> None:
    """Tiles of the ring of 32 columns against the cells, all the way to the flag."""
    memory, symbols = seasons.pyboy.memory, seasons.symbols
    seasons.begin("autumn", 1)
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(120):
        seasons["lives"], apples = 3, seasons["apples"]
        seasons.step(scripted_player(seasons, rng))
        if seasons["apples"] != apples:
            seasons.run(8)  # an eaten apple is gone from the picture some frames later
        first = seasons["camera"] >> 3
        for column in range(first, first + 20):
            start = symbols["_cells"] + 8 * (column >> 1)
            cells = memory[start : start + 8]
            for row, cell in enumerate(cells):
                tile = memory[0, symbols["_cell_tiles"] + 4 * cell + 2 * (column & 1)]
                shown = memory[0, 0x9800 + 64 * row + (column & 31)]
                palette = memory[0, symbols["_cell_palettes"] + cell]
                assert shown == tile
                assert memory[1, 0x9800 + 64 * row + (column & 31)] == palette
        checked += 1
    assert checked == 120
    assert seasons["camera"] > 256  # the ring has gone round


def test_the_classes_of_tiles_are_those_of_the_cells_and_sprites(seasons: Seasons) -> None:
    memory, symbols = seasons.pyboy.memory, seasons.symbols
    listed = seasons.game["parts"]["tiles"]["tiles"]["classes"]
    classes = {name: set(ids) for name, ids in listed.items()}
    found: dict[int, set[int]] = {}
    for level in LEVELS:
        seasons.begin(level, 1)
        first = symbols["_cells"]
        for cell in set(memory[first : first + 8 * seasons["columns"]]):
            at = symbols["_cell_tiles"] + 4 * cell
            kind = memory[symbols["_cell_kinds"] + cell]
            found.setdefault(kind, set()).update(256 + tile for tile in memory[at : at + 4])
    assert (found[SOLID], found[1], found[BRAMBLE]) == (
        *(classes["solid"], classes["apple"], classes["brambles"]),
    )
    assert classes["flag"] < found[0]
    for kind, name in ((SNAIL, "snail"), (BEE, "bee")):
        seasons.begin("spring", 1)
        put_creature(seasons, kind, seasons["runner_x"] + 40, GROUND)
        seasons.run(4)
        sprites = [memory[0xFE00 + 4 * n : 0xFE04 + 4 * n] for n in range(40)]
        shown = {tile + half for y, _, tile, _ in sprites if y for half in (0, 1)}
        assert shown <= classes["fox"] | classes[name]
        assert shown & classes["fox"]
        assert shown & classes[name]


def test_an_apple_is_eaten_once(seasons: Seasons) -> None:
    seasons.begin("spring", 1)
    column = next(i for i in range(16) if seasons.kind_at(16 * i + 8, 88) == 1)
    for _ in range(2):
        seasons["runner_x"], seasons["runner_y"] = 16 * column + 8, 96
        seasons.run(2)
        assert seasons["apples"] == 1


@pytest.mark.parametrize("kind", [SNAIL, BEE])
def test_a_creature_hurts_from_the_side_and_bursts_from_above(seasons: Seasons, kind: int) -> None:
    seasons.begin("spring", 1)
    seasons.run(10)
    put_creature(seasons, kind, seasons["runner_x"] + 4, 104)
    seasons.run(4)
    assert (seasons["lives"], seasons["stomps"]) == (2, 0)
    assert seasons["hurt_frames"] > 80
    seasons.run(40)
    assert seasons["lives"] == 2
    seasons["hurt_frames"] = 0
    put_creature(seasons, kind, 40, 104)
    seasons["runner_x"], seasons["runner_y"] = 40, 70
    poke(seasons, "_on_ground", 0)
    seasons.run(20)
    assert (seasons["lives"], seasons["stomps"]) == (2, 1)
    assert seasons["creature_1_kind"] in (0, PUFF)


def test_a_pit_costs_a_life_and_the_fox_comes_back_above_ground(seasons: Seasons) -> None:
    seasons.begin("spring", 1)
    pit = next(i for i in range(20, 40) if not seasons.kind_at(16 * i, 120))
    seasons["camera"] = 16 * pit - 64
    seasons["runner_x"], seasons["runner_y"] = 16 * pit + 16, 100
    poke(seasons, "_on_ground", 0)
    seasons.run(20)
    assert seasons["lives"] == 2
    seasons.run(80)
    assert (seasons["lives"], seasons["on_ground"], seasons["runner_y"]) == (2, 1, GROUND)


def test_brambles_hurt_and_throw_the_fox_out(seasons: Seasons) -> None:
    seasons.begin("summer", 1)
    place = next(16 * i for i in range(96) if seasons.kind_at(16 * i, 120) == BRAMBLE)
    seasons["camera"] = place - 64
    seasons["runner_x"], seasons["runner_y"] = place + 16, 96
    poke(seasons, "_on_ground", 0)
    for _ in range(60):
        seasons.run(1)
        if seasons["lives"] == 2:
            break
    seasons.run(4)
    assert seasons["runner_speed"] >= 128  # upwards
    assert seasons["lives"] == 2


def test_the_last_life_and_the_flag_end_the_level_at_once(seasons: Seasons) -> None:
    seasons.begin("spring", 1)
    seasons["lives"] = 1
    put_creature(seasons, SNAIL, 30, 104)
    for _ in range(60):
        assert (seasons["result"] == LOST) == (seasons["lives"] == 0)
        seasons.run(1)
    assert seasons["result"] == LOST
    seasons.run(300)
    assert seasons["result"] == LOST
    seasons.begin("spring", 1)
    seasons["camera"] = 16 * seasons["columns"] - 160
    seasons["runner_x"] = 16 * (seasons["columns"] - 3) - 3
    seasons.hold(["right"])
    seasons.run(4)
    assert seasons["result"] == WON
    seasons.hold([])
    seasons.run(100)
    seasons.run_script([{"hold": ["start"], "frames": 4}, {"wait": 20}])
    assert (seasons["result"], seasons["level"]) == (RUNNING, 2)


@every_level
def test_same_seed_same_game_and_another_seed_other_creatures(seasons: Seasons, level: str) -> None:
    with closing(Seasons()) as other:
        assert trace(seasons, level, 9, 60) == trace(other, level, 9, 60)
    seeds = (1, 2, 3, 4, 5, 0x8000, 0xFFFF)
    assert len({tuple(row[:-1] for row in trace(seasons, level, seed, 60)) for seed in seeds}) > 2


def test_a_level_is_the_same_for_each_seed(seasons: Seasons) -> None:
    kinds = []
    for seed in (1, 999):
        seasons.begin("winter", seed)
        kinds.append(list(seasons.kinds))
    assert kinds[0] == kinds[1]
    assert {SOLID, BRAMBLE, 0, 1} == set(kinds[0])


@every_level
def test_pictures_are_in_colour_and_each_season_has_its_own_sky(
    seasons: Seasons, level: str
) -> None:
    skies = set()
    for name in LEVELS:
        seasons.begin(name, 1)
        seasons.step("idle", render=True)
        skies.add(tuple(int(part) for part in seasons.pyboy.screen.ndarray[2, 2, :3]))
    assert len(skies) == 4
    seasons.begin(level, 5)
    rng = np.random.default_rng(0)
    colours = set()
    for _ in range(60):
        seasons.step(random_player(seasons, rng), render=True)
        colours |= set(np.unique(seasons.pyboy.screen.ndarray[:, :, :3] @ [1 << 16, 1 << 8, 1]))
    assert len(colours) > 12
    assert any(len(set(int(colour).to_bytes(3))) == 3 for colour in colours)


def test_video_memory_is_left_alone_while_the_picture_is_drawn(seasons: Seasons) -> None:
    """The first routine after the copies of v-blank always finds the console still in v-blank."""
    lines: list[int] = []
    seasons.begin("autumn", 1)
    seasons.pyboy.hook_register(
        0,
        seasons.symbols["_input_read"],
        lambda _: lines.append(seasons.pyboy.memory[0xFF44]),
        None,
    )
    rng = np.random.default_rng(0)
    for _ in range(200):
        seasons["lives"] = 3
        seasons.step(scripted_player(seasons, rng))
    assert len(lines) == 800  # and no frame took longer than a frame
    assert min(lines) >= 144


@pytest.mark.slow
@pytest.mark.parametrize("n_episodes", [2, pytest.param(5, marks=pytest.mark.slow)])
@every_level
def test_a_scripted_player_finishes_each_level_and_random_buttons_none(
    seasons: Seasons, level: str, n_episodes: int
) -> None:
    seeds = range(1, n_episodes + 1)
    played = [episode(seasons, scripted_player, level, seed) for seed in seeds]
    assert sum(one.result == WON for one in played) >= 0.5 * n_episodes
    assert all(one.timesteps < 500 for one in played if one.result == WON)
    assert not any(episode(seasons, random_player, level, seed).result == WON for seed in seeds)


@pytest.mark.parametrize(("colour", "channels"), [("grey", 1), ("rgb", 3)])
def test_the_env_shows_it_in_grey_or_in_colour(colour: str, channels: int) -> None:
    config = EnvConfig(observation=ObservationConfig.model_validate({"colour": colour}))
    with closing(make_env(config, load_game("seasons"))) as env:
        observation: Any = env.reset(seed=0)[0]
        assert observation.shape == env.observation_space.shape == (channels, 72, 80)
        earned = 0.0
        for _ in range(10):
            observation, reward, *_ = env.step(ACTIONS.index("right"))
            earned += reward
        assert earned > 0
        assert len(np.unique(observation)) > 8
