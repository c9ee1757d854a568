"""How hard Beacon is, that it can be finished, and what that earns."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import load_game
from tests.games.beacon_player import (
    ACTIONS,
    PARTS,
    Beacon,
    ScriptedPlayer,
    episode,
    random_player,
)
from tests.games.console import ROM_SOURCES

RUNNING, WON = range(2)
SOURCE = ROM_SOURCES / "beacon"


@pytest.fixture
def beacon() -> Iterator[Beacon]:
    with closing(Beacon()) as console:
        yield console


@pytest.mark.slow
def test_random_buttons_take_the_first_key_sometimes_and_finish_nothing(beacon: Beacon) -> None:
    _check_random(beacon, 20)


@pytest.mark.soak
def test_random_buttons_take_the_first_key_in_5_to_30_percent_of_300_episodes(
    beacon: Beacon,
) -> None:
    _check_random(beacon, 300)


def _check_random(beacon: Beacon, count: int) -> None:
    played = [episode(beacon, random_player, "shore", seed) for seed in range(1, count + 1)]
    assert 0.05 <= sum(one.keys > 0 for one in played) / count <= 0.3
    assert not any(one.result == WON for one in played)


def test_a_scripted_player_finishes_from_the_beginning(beacon: Beacon) -> None:
    _check_scripted(beacon, 3)


@pytest.mark.soak
def test_a_scripted_player_finishes_most_of_300_episodes(beacon: Beacon) -> None:
    _check_scripted(beacon, 300)


def _check_scripted(beacon: Beacon, count: int) -> None:
    played = [
        episode(beacon, ScriptedPlayer(*PARTS), "shore", seed, longest=3_000)
        for seed in range(1, count + 1)
    ]
    assert sum(one.result == WON for one in played) >= 0.6 * count
    times_s = [one.timesteps * 4 / 60 for one in played if one.result == WON]
    assert 75 < np.median(times_s) < 180
    assert max(len(one.rooms) for one in played) >= 23


@pytest.mark.parametrize("n_episodes", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", ["caves", "lighthouse"])
def test_a_scripted_player_finishes_from_the_later_parts(
    beacon: Beacon, part: str, n_episodes: int
) -> None:
    parts = PARTS[PARTS.index(part) :]
    played = [
        episode(beacon, ScriptedPlayer(*parts), part, seed, longest=3_000)
        for seed in range(1, n_episodes + 1)
    ]
    assert sum(one.result == WON for one in played) >= 0.6 * n_episodes


def test_a_finished_episode_earns_ten_and_only_by_keys_doors_and_the_end(beacon: Beacon) -> None:
    config = EnvConfig(
        frame_skip=4, start_states=("shore",), max_idle_frames=0, max_episode_timesteps=3_000
    )
    with closing(make_env(config, load_game("beacon"))) as env:
        for seed in range(5):
            env.reset(seed=seed)
            rng_seed: Any = env.read_variables()["rng_seed"]
            beacon.begin("shore", rng_seed)
            player, rng = ScriptedPlayer(*PARTS), np.random.default_rng(0)
            total, terminated = 0.0, False
            while not terminated and beacon["result"] == RUNNING:
                action = player(beacon, rng)
                beacon.step(action)
                before = env.reward_terms
                _, reward, terminated, truncated, info = env.step(ACTIONS.index(action))
                total += reward
                assert (reward > 0) == (env.reward_terms != before)
                assert not truncated
            if info.get("is_success"):
                break
    assert info["is_success"]
    assert info["reward_terms"] == {"key": 3.0, "door": 3.0, "beacon": 4.0}
    assert total == pytest.approx(10.0)


# --- the map ---


def read_rooms() -> list[list[str]]:
    """The map as the build reads it."""
    code = "import json, rooms; print(json.dumps(rooms.read_rooms()))"
    command = [sys.executable, "-B", "-c", code]
    printed = subprocess.run(command, cwd=SOURCE, capture_output=True, encoding="utf-8", check=True)
    return json.loads(printed.stdout)


def test_keys_and_doors_come_in_one_order() -> None:
    """Without its key, door n keeps all later keys out of reach: a flood of the map says so."""
    rooms = read_rooms()
    for number in range(1, 7):
        reached = flood(rooms, open_doors=set(range(1, number)))
        assert {item for item in reached if item in "abcdef"} == set("abcdef"[:number])
        assert "L" not in reached
        assert str(number) in reached
    assert "L" in flood(rooms, open_doors=set(range(1, 7)))


def flood(rooms: list[list[str]], *, open_doors: set[int]) -> set[str]:
    """The letters of the map that can be stood on, or touched, from the start of the shore."""
    todo, seen, letters = [(5 * 8 + 4, 10 + 4)], set(), set()
    while todo:
        y, x = todo.pop()
        if (y, x) in seen:
            continue
        seen.add((y, x))
        letter = rooms[4 * (y // 8) + x // 10][y % 8][x % 10]
        letters.add(letter)
        if letter in "#o~L" or (letter.isdigit() and int(letter) not in open_doors):
            continue
        todo += [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
    return letters
