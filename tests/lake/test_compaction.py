"""Merging segments changes no transition, wherever it is stopped."""

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.upkeep import compact, verify_lake
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds, everything
from tests.lake.test_lake_faults import Faults


def small_segments(path: Path) -> tuple[Lake, dict[str, Play]]:
    """Two streams with six segments each."""
    lake = Lake.create(path, SCHEMA)
    plays = {}
    for seed, stream in enumerate(("a", "a2")):
        plays[stream] = Play(SCHEMA, np.random.default_rng(seed), 2)
        with LakeWriter(lake, stream, n_envs=2) as writer:
            for _ in range(6):
                plays[stream].steps(writer, 9)
                assert writer.seal()
    return lake, plays


def sequences(plays: dict[str, Play]) -> dict[str, list]:
    return {
        f"{stream}/{env}": rows
        for stream, play in plays.items()
        for env, rows in enumerate(play.stored)
    }


def test_merged_segments_hold_the_same_transitions_and_can_be_written_to(tmp_path: Path) -> None:
    lake, plays = small_segments(tmp_path)
    before = assert_view_holds(lake.view(), sequences(plays), n_step=3)
    assert compact(lake) == (12, 2)
    assert assert_view_holds(lake.view(), sequences(plays), n_step=3) == before
    assert not verify_lake(tmp_path).damaged
    with LakeWriter(lake, "a", n_envs=2) as writer:
        plays["a"].idle = [0, 1]
        plays["a"].steps(writer, 9)
    found = what_is_in(lake)
    assert found > before
    assert len(found) == len(before) + 18
    assert compact(lake) == (3, 2)
    assert what_is_in(lake) == found


def what_is_in(lake: Lake) -> set[tuple[str, int]]:
    return set(everything(lake.view())[1])


def test_segments_stay_under_their_size_and_pinned_ones_stay(tmp_path: Path) -> None:
    lake, plays = small_segments(tmp_path)
    size = max(path.stat().st_size for path in lake.files(".segment"))
    mark = lake.pin("kept")
    assert compact(lake) == (12, 12)
    lake.unpin("kept")
    assert compact(lake, segment_bytes=2 * size)[1] >= 6
    assert all(path.stat().st_size <= 2 * size for path in lake.files(".segment"))
    with pytest.raises(LakeError, match="missing"):
        lake.view(mark)
    assert_view_holds(lake.view(), sequences(plays))


def test_a_crash_at_any_operation_leaves_each_transition_once(tmp_path: Path) -> None:
    lake, plays = small_segments(tmp_path / "whole")
    before = assert_view_holds(lake.view(), sequences(plays))
    at = 0
    while True:
        copy = tmp_path / f"{at}"
        shutil.copytree(lake.path, copy)
        faults = Faults(lambda n, at=at: n >= at)  # type: ignore[misc]
        is_whole = False
        with faults.injected(), suppress(OSError):
            compact(Lake.open(copy))
            is_whole = True
        assert assert_view_holds(Lake.open(copy).view(), sequences(plays)) == before
        compact(Lake.open(copy))
        assert assert_view_holds(Lake.open(copy).view(), sequences(plays)) == before
        assert len(list(copy.iterdir())) == 3  # lake.json and two segments
        if is_whole:
            break
        at += 3
    assert at > 40


def test_a_damaged_segment_is_not_merged(tmp_path: Path) -> None:
    lake, _ = small_segments(tmp_path)
    path = lake.files(".segment")[2]
    content = bytearray(path.read_bytes())
    content[600] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(LakeError, match="checksum is wrong"):
        compact(lake)
    assert len(list(tmp_path.iterdir())) == 13
