"""Merging segments changes no transition, wherever it is stopped."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.segment import OPEN, SEALED
from game_rl.lake.upkeep import compact, lake_statistics, verify_lake
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


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Play]:
    """Two sealed segments, one shelved, a pin, and an open file as a crash leaves it."""
    path = tmp_path_factory.mktemp("whole")
    lake = Lake.create(path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    writer = LakeWriter(lake, "w", n_envs=1)
    for n in range(3):
        play.steps(writer, 12)
        assert writer.seal()
        if n == 0:
            lake.pin("first")
    lake._shelve(lake.files(".segment")[0])
    play.steps(writer, 20)
    writer._waiting.join()
    copy = tmp_path_factory.mktemp("copies") / "lake"
    shutil.copytree(path, copy)
    writer.close()
    return copy, play


def test_a_whole_lake_is_whole(whole: tuple[Path, Play]) -> None:
    report = verify_lake(whole[0])
    assert not report.damaged
    assert report.n_segments == 3
    assert report.n_transitions == 36
    assert list(report.open_files.values()) == [0]


def test_a_damaged_file_that_a_pin_needs_is_counted_once(
    whole: tuple[Path, Play], tmp_path: Path
) -> None:
    path = tmp_path / "lake"
    shutil.copytree(whole[0], path)
    (shelved,) = path.glob("*.shelved")
    content = shelved.read_bytes()
    shelved.write_bytes(content[:-3])
    assert list(verify_lake(path).damaged) == [shelved.name]
    assert verify_lake(path) == verify_lake(path, decodes=False)
    shelved.unlink()
    (text,) = verify_lake(path).damaged.values()
    assert text.startswith(f"{path / 'pins' / 'first.json'}: the checkpoint needs")


def test_files_that_a_writer_deletes_meanwhile_are_no_damage(
    whole: tuple[Path, Play], tmp_path: Path
) -> None:
    path = tmp_path / "lake"
    shutil.copytree(whole[0], path)
    lake, sealed = Lake.open(path), Lake.open(path).files(SEALED)

    def evict(done: int, _: int) -> None:
        if done == 0:
            for file in (*sealed[-1:], *lake.files(OPEN), *(path / "pins").glob("*.json")):
                file.unlink()

    report = verify_lake(path, evict)
    assert not report.damaged
    assert report.n_segments == 2
    assert not report.open_files


def flipped(content: bytes, rng: np.random.Generator, every: int) -> Iterator[bytes]:
    """Copies with one bit changed, at about every so many bytes."""
    for start in range(0, len(content), every):
        at = min(start + int(rng.integers(every)), len(content) - 1)
        copy = bytearray(content)
        copy[at] ^= 1 << int(rng.integers(8))
        yield bytes(copy)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".segment", ".shelved", "first.json", "lake.json"])
def test_a_flipped_bit_is_named_and_never_sampled(whole: tuple[Path, Play], kind: str) -> None:
    path, play = whole
    sequences = {"w/0": play.stored[0]}
    file = next(file for file in sorted(path.rglob("*")) if file.name.endswith(kind))
    content = file.read_bytes()
    try:
        for changed in flipped(content, np.random.default_rng(0), every=5):
            file.write_bytes(changed)
            try:
                report = verify_lake(path, decodes=False)
                assert str(file.relative_to(path)) in report.damaged
                assert "replay verify" not in f"{report}"  # that is what was run
            except LakeError as error:
                assert kind == "lake.json"
                assert "lake.json" in str(error)  # noqa: PT017
            with suppress(LakeError):
                lake = Lake.open(path)
                assert_view_holds(lake.view(), sequences)
                pin = path / "pins" / "first.json"
                mark = Mark.from_json(pin.read_text(errors="replace", encoding="utf-8"), source=pin)
                assert_view_holds(lake.view(mark), sequences, ends={"w/0": 12})
    finally:
        file.write_bytes(content)


def test_what_is_behind_a_flipped_bit_of_an_open_file_is_cut(
    whole: tuple[Path, Play], tmp_path: Path
) -> None:
    path, play = whole
    (file,) = path.glob("*.open")
    for number, changed in enumerate(flipped(file.read_bytes(), np.random.default_rng(0), every=9)):
        copy = tmp_path / f"{number}"
        shutil.copytree(path, copy)
        (copy / file.name).write_bytes(changed)
        assert sum(verify_lake(copy).open_files.values()) > 0
        lake = Lake.open(copy)
        LakeWriter(lake, "w", n_envs=1).close()
        found = assert_view_holds(lake.view(), {"w/0": play.stored[0]})
        assert found == {("w/0", i) for i in range(12, 12 + len(found))}
        assert 24 <= len(found) < 56


def test_a_lake_of_other_rows_is_refused(tmp_path: Path) -> None:
    Lake.create(tmp_path, SCHEMA)
    with pytest.raises(LakeError, match="frame_stack=3"):
        Lake.create(tmp_path, replace(SCHEMA, frame_stack=2))


def test_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"not a Lake: it has no lake\.json"):
        Lake.open(tmp_path)


def test_episodes_are_counted_as_they_were_played(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0), 2, end_chance=0.2)
    with LakeWriter(lake, "w", n_envs=2, segment_bytes=600) as writer:
        play.steps(writer, 100)
    returns, lengths = [], []
    for rows in play.stored:
        episode = []
        for row in rows:
            episode.append(row.reward)
            if row.terminated or row.truncated:
                returns.append(sum(episode))
                lengths.append(len(episode))
                episode = []
    found = lake_statistics(lake)
    (stream,) = found.streams
    assert (stream.stream, stream.n_envs, stream.n_transitions) == ("w", 2, 200)
    assert stream.n_episodes == len(returns) > 10
    assert stream.mean_return == pytest.approx(np.mean(returns))
    assert stream.mean_length == pytest.approx(np.mean(lengths))
    assert found.raw_bytes_per_transition == 2 * 3 * 3 * 5 + 8 + 4 + 4 + 4
    assert found.n_bytes == sum(p.stat().st_size for p in tmp_path.glob("*.segment"))
