"""How far back a Lake is seen, against trying every level."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.errors import LakeError
from game_rl.lake.horizon import Capacity, Horizon, kept_numbers, raised
from game_rl.lake.lake import Lake
from game_rl.lake.upkeep import verify_lake
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds

ends_of_sequences = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1)


@given(ends_of_sequences, st.integers(1, 100))
def test_the_level_is_the_largest_that_the_capacity_has_room_for(
    ends: dict[str, int], capacity: int
) -> None:
    def total(level: int) -> int:
        return sum(min(end, level) for end in ends.values())

    levels = [level for level in range(1, 101) if total(level) <= capacity]
    found = kept_numbers(ends, capacity)
    assert total(found) == total(max(levels, default=1))
    assert raised({}, ends, capacity) == {
        name: end - found for name, end in ends.items() if end > found
    }


@given(ends_of_sequences, st.lists(st.integers(0, 40), max_size=5), st.integers(6, 60))
def test_how_often_it_was_raised_on_the_way_changes_nothing(
    ends: dict[str, int], ways: list[int], capacity: int
) -> None:
    firsts: dict[str, int] = {}
    for way in sorted(ways):  # each sequence has come so far, or to its end
        reached = {name: min(end, way) for name, end in ends.items() if way}
        firsts = raised(firsts, reached, capacity)
    assert raised(firsts, ends, capacity) == raised({}, ends, capacity)


def test_a_stream_that_ended_keeps_as_much_as_one_that_grows(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA, capacity=Capacity(transitions=60))
    sequences = {}
    for seed, (stream, n) in enumerate({"short": 10, "ended": 100, "grows": 300}.items()):
        play = Play(SCHEMA, np.random.default_rng(seed))
        with LakeWriter(lake, stream, n_envs=1, segment_bytes=500) as writer:
            play.steps(writer, n)
        sequences[f"{stream}/0"] = play.stored[0]
    for reader in (lake, Lake.open(tmp_path)):
        assert assert_view_holds(reader.view(), sequences, n_step=3) == {
            *(("short/0", i) for i in range(10)),
            *(("ended/0", i) for i in range(75, 100)),
            *(("grows/0", i) for i in range(275, 300)),
        }
    left = sum(segment.n_transitions for segment in lake.view().segments)
    assert 60 <= left < 60 + 2 * 20  # files of which nothing is seen are gone


def test_a_larger_capacity_shows_nothing_that_was_hidden(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA, capacity=Capacity(transitions=20))
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1) as writer:
        play.steps(writer, 50)
    larger = Lake.open(tmp_path, capacity=Capacity(transitions=40))
    with LakeWriter(larger, "w", n_envs=1) as writer:
        play.idle = [0]
        play.steps(writer, 5)
    assert [
        number for _, number in sorted(assert_view_holds(larger.view(), {"w/0": play.stored[0]}))
    ] == [*range(30, 55)]


def test_a_stream_that_is_deleted_begins_at_its_first_number_again(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA, capacity=Capacity(transitions=20))
    for n in (50, 7):
        lake.delete_stream("w")
        play = Play(SCHEMA, np.random.default_rng(n))
        with LakeWriter(lake, "w", n_envs=1) as writer:
            play.steps(writer, n)
    found = assert_view_holds(lake.view(), {"w/0": play.stored[0]})
    assert found == {("w/0", i) for i in range(7)}


def test_a_changed_horizon_is_told(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    Horizon(tmp_path).raise_to({"w/0": 5})
    file = tmp_path / "horizon.json"
    file.write_text(file.read_text(encoding="utf-8").replace("5}", "6}"), encoding="utf-8")
    assert "its checksum is wrong" in verify_lake(tmp_path).damaged["horizon.json"]
    with pytest.raises(LakeError, match=r"horizon\.json: its checksum is wrong"):
        lake.view()
