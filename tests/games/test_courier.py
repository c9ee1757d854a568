"""Courier, played: its rules, its roads, and that the screen keeps nothing of the sign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import cache

import numpy as np
import pytest

from tests.games.courier_player import (
    LENGTHS,
    MOON,
    SUN,
    Courier,
    episode,
    remembering_player,
    started,
)

RUNNING, WON, LOST = range(3)
IN_SIGHT = 9  # steps after which the sign has left the screen
every_road = pytest.mark.parametrize("road", LENGTHS)


def walk(courier: Courier, steps: int) -> None:
    for _ in range(steps):
        courier.step("right")


@cache
def seed_of(sign: int, scenery: int) -> int:
    """Find a seed that gives this sign, with this land along the road."""
    with closing(Courier()) as console:
        for seed in range(1, 2_000):
            console.begin("road_25", seed)
            if (console["sign"], console.at("scenery")) == (sign, scenery):
                return seed
    pytest.fail("there is no such seed")


@pytest.fixture
def courier() -> Iterator[Courier]:
    with closing(Courier()) as console:
        yield console


@every_road
def test_a_road_begins_with_the_window_closed_and_has_its_length(
    courier: Courier, road: str
) -> None:
    courier.load(started(road), 1)
    assert (courier["sign"], courier["steps"], courier["result"]) == (0, 0, RUNNING)
    assert courier["road"] == 1 + list(LENGTHS).index(road)
    courier.begin(road, 1)
    walk(courier, IN_SIGHT - 1)
    assert courier["sign_seen"] == courier["sign"] > 0
    walk(courier, 1)
    assert courier["sign_seen"] == 0
    assert courier["left"] == LENGTHS[road]
    walk(courier, LENGTHS[road] - 1)
    assert courier["at_fork"] == 0
    walk(courier, 1)
    assert courier["at_fork"] == 1
    assert courier["steps"] == IN_SIGHT + LENGTHS[road]


@pytest.mark.parametrize("sign", [SUN, MOON])
@pytest.mark.parametrize("action", ["up", "down"])
def test_the_gate_with_the_sign_of_the_inn_is_the_right_one(
    courier: Courier, sign: int, action: str
) -> None:
    courier.begin("road_25", seed_of(sign, 3))
    walk(courier, courier["left"])
    walk(courier, 3)
    assert courier["result"] == RUNNING
    courier.step(action)
    chosen = SUN if action == "up" else MOON
    assert courier["chosen"] == chosen
    assert courier["result"] == (WON if chosen == sign else LOST)
    courier.hold([])
    courier.run(300)
    assert courier["result"] == (WON if chosen == sign else LOST)
    courier.run_script([{"hold": ["start"], "frames": 4}, {"wait": 30}])
    assert courier["result"] == RUNNING


def test_who_remembers_the_sign_comes_home_on_every_road(courier: Courier) -> None:
    for road, length in LENGTHS.items():
        assert episode(courier, remembering_player, road, 2) == (WON, IN_SIGHT + length + 1)


def test_up_and_down_do_nothing_before_the_fork(courier: Courier) -> None:
    courier.begin("road_25", 1)
    for action in ("up", "down", "idle"):
        courier.step(action)
    assert (courier["steps"], courier["chosen"], courier["result"]) == (0, 0, RUNNING)


def pictures(courier: Courier, seed: int, rng: np.random.Generator) -> dict[int, bytes]:
    """Return the picture at each step, of a courier who also pauses and presses other buttons."""
    courier.begin("road_100", seed)
    found = {}
    while not courier["at_fork"]:
        courier.step("right")
        for _ in range(int(rng.integers(4))):
            courier.step(("idle", "up", "down")[int(rng.integers(3))])
        if courier["at_fork"]:
            break
        courier.step("idle", render=True)
        found[courier["steps"]] = courier.picture().tobytes()
    return found


def test_from_the_last_sight_of_the_sign_on_the_screen_says_where_the_courier_is_and_no_more(
    courier: Courier,
) -> None:
    rng = np.random.default_rng(0)
    sun = pictures(courier, seed_of(SUN, 5), rng)
    moon = pictures(courier, seed_of(MOON, 5), rng)
    for step in range(1, IN_SIGHT + LENGTHS["road_100"]):
        assert (sun[step] != moon[step]) == (step < IN_SIGHT)


def test_any_rhythm_of_the_buttons_gives_whole_steps(courier: Courier) -> None:
    rng = np.random.default_rng(1)
    courier.begin("road_100", 7)
    for _ in range(120):
        courier.hold(["right"] if rng.integers(2) else [])
        courier.run(int(rng.integers(1, 9)))
    courier.hold([])
    courier.run(8)
    assert courier["steps"] > 20
    assert courier.at("scroll") == 8 * courier["steps"] % 256


def test_the_sign_comes_from_the_seed_alone_and_is_either_as_often(courier: Courier) -> None:
    signs = []
    for seed in range(1, 101):
        courier.load(started("road_100"), seed)
        courier.run(40)
        signs.append(courier["sign"])
    assert 35 <= signs.count(SUN) <= 65
    assert signs.count(SUN) + signs.count(MOON) == 100
    with closing(Courier()) as other:
        for seed in (1, 2, 3, 4, 5):
            other.begin("road_25", seed)
            assert other["sign"] == signs[seed - 1]


def test_video_memory_is_left_alone_while_the_picture_is_drawn(courier: Courier) -> None:
    """Copies begin in v-blank and end in it: the game then reads the buttons."""
    entries: list[int] = []
    frames: list[int] = []

    def line(lines: list[int]) -> None:
        lines.append(courier.pyboy.memory[0xFF44])

    courier.begin("road_100", 1)
    courier.pyboy.hook_register(0, courier.symbols["_flush_video"], line, entries)
    courier.pyboy.hook_register(0, courier.symbols["_input_read"], line, frames)
    walk(courier, courier["left"])
    courier.step("up")
    courier.run(60)
    assert len(frames) >= 4 * 109
    assert min(entries) >= 144
    assert min(frames) >= 144
    assert max(frames) <= 153
