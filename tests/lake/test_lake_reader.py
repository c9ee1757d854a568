"""A view whose table is in a file, against the one that has it in memory."""

import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.lake.lake import Lake
from game_rl.lake.lake_reader import TABLE_BYTES, StoredView
from game_rl.lake.sampler import Sampler
from game_rl.lake.segment import SEALED, SegmentName, write_segment
from game_rl.lake.view import EvictedError, LakeView
from game_rl.lake.writer import LakeWriter
from tests.examples import examples
from tests.lake.plays import SCHEMA, Play
from tests.lake.test_sampler import filled


def played(path: Path, seed: int, n_envs: int, n: int, *, segment_bytes: int = 700) -> Lake:
    lake = Lake.create(path, SCHEMA)
    for stream in ("b", "a"):
        play = Play(SCHEMA, np.random.default_rng(seed), n_envs)
        with LakeWriter(lake, stream, n_envs=n_envs, segment_bytes=segment_bytes) as writer:
            play.steps(writer, n)
    return lake


def shuffled(lake: Lake, path: Path, rng: np.random.Generator, n_files: int) -> Lake:
    """The same blocks in other files, in any order."""
    other, view = Lake.create(path, SCHEMA), lake.view()
    for stream in view.streams:
        rank = view.streams.index(stream)
        numbers = rng.permutation(np.flatnonzero(view.block_sequences >> 32 == rank))
        for i, some in enumerate(np.array_split(numbers, n_files)):
            file = path / SegmentName(stream, i, i).new(SEALED)
            write_segment(file, [view.encoded(number) for number in some.tolist()], lambda: SCHEMA)
    return other


def lean(view: LakeView) -> LakeView:
    """As a Lake makes it that keeps no indices."""
    segments = [replace(segment, kept=None) for segment in view.segments]
    return LakeView(view.schema, segments, view.sequences, view.horizon, view.limits)


@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 120),
    st.integers(0, 4),
    st.booleans(),
)
def test_every_row_is_found_where_the_view_in_memory_finds_it(
    seed: int, n_envs: int, n: int, n_files: int, has_limits: bool
) -> None:
    """Over streams, envs, files in any order, and rows that are not seen at both ends."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lake = played(root / "lake", seed, n_envs, n)
        if n_files:
            lake = shuffled(lake, root / "other", rng, n_files)
        whole = lake.view()
        horizon = {name: int(rng.integers(n)) for name in whole.sequences}
        limits = {name: int(rng.integers(n + 1)) for name in whole.sequences}
        view = LakeView(
            SCHEMA, whole.segments, whole.sequences, horizon, limits if has_limits else None
        )
        stored = StoredView(lean(view), root)
        assert stored.table.tobytes() == view.table.tobytes()
        assert len(stored) == len(view) == view.n_transitions.sum()
        np.testing.assert_array_equal(stored.stream_edges, view.stream_edges)
        ranks = rng.permutation(len(view))
        for found, expected in zip(stored.find(ranks), view.find(ranks), strict=True):
            np.testing.assert_array_equal(found, expected)
        for number in rng.permutation(len(view.table)).tolist():
            assert stored.record(number).tobytes() == view.table[number].tobytes()


def test_batches_are_those_of_the_view_in_memory(tmp_path: Path) -> None:
    view = played(tmp_path / "lake", 3, 2, 200).view()
    ranks = np.random.default_rng(0).integers(len(view), size=100)
    one, other = (
        Sampler(v, n_step=3).take(ranks) for v in (view, StoredView(lean(view), tmp_path))
    )
    for name in vars(one):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_view_of_nothing_has_nothing(tmp_path: Path) -> None:
    view = StoredView(LakeView(SCHEMA, ()), tmp_path)
    assert len(view) == 0
    assert not len(view.table)
    assert not len(view.stream_edges)


def test_the_table_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    view = StoredView(filled(tmp_path / "lake", {"a": 60}).view(), folder)
    assert not list(folder.iterdir())
    assert TABLE_BYTES * view.n_blocks == view.table.nbytes


def test_a_segment_that_is_gone_is_an_evicted_one(tmp_path: Path) -> None:
    view = lean(filled(tmp_path, {"a": 60}).view())
    view.segments[1].path.unlink()
    with pytest.raises(EvictedError, match="was evicted"):
        StoredView(view, tmp_path)


@pytest.mark.slow
def test_what_a_view_keeps_in_memory_hardly_grows_with_the_rows(tmp_path: Path) -> None:
    """As many files of ten times the blocks; in memory a view has 85 bytes of each block."""
    sizes = {}
    for n in (500, 5_000):
        lake = played(tmp_path / str(n), 1, 2, n, segment_bytes=1 << 30)
        view = lean(lake.view())
        StoredView(view, tmp_path)  # so that what is made once is there
        tracemalloc.start()
        stored = StoredView(view, tmp_path)
        sizes[n], _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        n_blocks = stored.n_blocks
    assert sizes[5_000] - sizes[500] < n_blocks
