"""Bytes that follow the direction buttons, against games whose rules are known."""

from itertools import combinations, pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.emulator.emulator import Emulator
from game_rl.game_check.button_trial import moves_apart
from game_rl.games.definition import load_game
from game_rl.ram_search.position_search import (
    AXES,
    _moved,
    find_position,
    overflows_of,
    room_scores,
)
from game_rl.ram_search.ranking import KnownPlaces
from game_rl.ram_search.searched_game import searched_game
from tests.ram_search.scripted_memory import ScriptedMemory

PLAYER, FOLLOWER, CLOCK, MENU, ONE_WAY, CAMERA = range(6)


def step(memory: bytearray, held: frozenset[str], frame: int) -> None:
    """Move a player, what follows it, a clock, the cursor of a menu, and what goes right only."""
    way = ("right" in held) - ("left" in held)
    memory[PLAYER] = (memory[PLAYER] + way) % 256
    if frame % 2 == 0 and memory[FOLLOWER] != memory[PLAYER]:
        memory[FOLLOWER] += 1 if memory[FOLLOWER] < memory[PLAYER] else -1
    memory[CLOCK] = (memory[CLOCK] - 1) % 256
    if way and frame % 12 == 0:
        memory[MENU] = (memory[MENU] + way) % 256
    memory[ONE_WAY] = (memory[ONE_WAY] + (way > 0)) % 256
    memory[CAMERA] = (-memory[PLAYER]) % 256


def test_a_player_moves_both_ways_and_obeys_before_what_follows_it() -> None:
    game = ScriptedMemory([100, 100, 90, 5, 7, 156], step, drawn=[PLAYER])
    moved = _moved(cast("Emulator", game), game.ram, AXES[0], [game.save_state()])
    assert np.flatnonzero(moved.times).tolist() == [PLAYER, FOLLOWER, MENU, CAMERA]
    assert moved.delays[PLAYER] <= moved.delays[FOLLOWER]
    assert moved.steps[MENU] < 10 <= moved.steps[PLAYER]
    up_and_down = _moved(cast("Emulator", game), game.ram, AXES[1], [game.save_state()])
    assert not up_and_down.times.any()


def test_nothing_moves_where_the_screen_shows_nothing() -> None:
    game = ScriptedMemory([100, 100, 90, 5, 7, 156], step)
    moved = _moved(cast("Emulator", game), game.ram, AXES[0], [game.save_state()])
    assert not moved.times.any()


def steps_up(values: list[int], idle: list[int]) -> int:
    """Count small steps up before the first other one; 0 if it goes as it does without a button."""
    steps = [(b - a + 128) % 256 - 128 for a, b in pairwise(values)]
    without = [(b - a + 128) % 256 - 128 for a, b in pairwise(idle)]
    if steps == without:
        return 0
    count = 0
    for each in steps:
        if not 0 <= each <= 24:
            break
        count += each > 0
    return count


def negated(values: list[int]) -> list[int]:
    return [-value % 256 for value in values]


@settings(max_examples=150, deadline=None)
@given(
    walks=st.lists(
        st.lists(st.sampled_from([-30, -2, -1, 0, 0, 1, 1, 2, 30]), min_size=5, max_size=5),
        min_size=3,
        max_size=3,
    )
)
def test_a_byte_that_moves_is_found_step_by_step(walks: list[list[int]]) -> None:
    idle, one, other = (
        [(200 + sum(walk[:n])) % 256 for n in range(len(walk) + 1)] for walk in walks
    )
    as_memory = [np.array([walk], np.uint8).T for walk in (idle, one, other)]
    rises, falls = moves_apart(*as_memory)
    for moves, turned in ((rises, lambda walk: walk), (falls, negated)):
        there = steps_up(turned(one), turned(idle))
        back = steps_up(negated(turned(other)), negated(turned(idle)))
        assert moves.is_two_way[0] == (there >= 2 and back >= 2)
        rests = there if len(set(other)) == 1 else 0
        rests += back if len(set(one)) == 1 else 0
        assert moves.is_one_way[0] == (rests >= 2)
        assert moves.steps[0] == max(there, back)


@settings(max_examples=100, deadline=None)
@given(
    start=st.integers(0, 2**16 - 1),
    walk=st.lists(st.integers(-60, 60), min_size=1, max_size=30),
    jumps=st.lists(st.integers(0, 255), max_size=3),
)
def test_the_byte_after_a_number_counts_its_overflows(
    start: int, walk: list[int], jumps: list[int]
) -> None:
    numbers = [(start + sum(walk[:n])) % 2**16 for n in range(len(walk) + 1)]
    low = np.array([[number % 256] for number in numbers], np.uint8)
    high = np.array([[number // 256] for number in numbers], np.uint8)
    n_crossed = sum(one // 256 != other // 256 for one, other in pairwise(numbers))
    assert overflows_of(low, high)[:, 0].tolist() == [n_crossed, n_crossed, 0]
    other = np.array([[jumps[n % len(jumps)] if jumps else 0] for n in range(len(low))], np.uint8)
    crossed, carried, others = overflows_of(low, other)[:, 0].tolist()
    assert crossed == n_crossed
    assert carried + others <= sum(a != b for a, b in pairwise(other))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_byte_tells_rooms_apart_as_counting_pairs_says(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 7))
    rooms = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    columns = data.draw(st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n), max_size=4))
    columns.append(rooms)
    alike = np.array([[a == b for b in rooms] for a in rooms], np.bool_).reshape(n, n)
    stays = np.array(columns, np.uint8).reshape(len(columns), n).T
    found = room_scores(stays, alike)
    pairs = list(combinations(range(n), 2))
    one_room = [(a, b) for a, b in pairs if rooms[a] == rooms[b]]
    two_rooms = [(a, b) for a, b in pairs if rooms[a] != rooms[b]]
    for column, score in zip(columns, found, strict=True):
        if not two_rooms:
            assert score == 0
            continue
        kept = sum(column[a] == column[b] for a, b in one_room)
        told = sum(column[a] != column[b] for a, b in two_rooms) / len(two_rooms)
        assert score == pytest.approx(min(kept / len(one_room) if one_room else 1.0, told))
    if two_rooms:
        assert found[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "names", "types"),
    [
        ("duel", ["player_x"], ["u8"]),
        ("beacon", ["room", "player_x", "player_y"], ["u8", "u8", "u8"]),
        ("seasons", ["runner_x"], ["u16"]),
    ],
)
def test_the_place_of_a_bundled_game_is_that_of_its_symbols(
    game: str, names: list[str], types: list[str]
) -> None:
    variables: dict[str, Any] = {each.name: each for each in load_game(game).variables}
    found = find_position(searched_game(game), KnownPlaces())
    groups = {"room": found.rooms, **found.axes}
    places = [groups[name][0] for name in found.place]
    assert [place.address for place in places] == [variables[name].address for name in names]
    assert [place.candidate.encoding.type for place in places] == types
