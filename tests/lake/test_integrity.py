"""A changed bit in any file of a Lake is found."""

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
from game_rl.lake.upkeep import lake_statistics, verify_lake
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds


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
