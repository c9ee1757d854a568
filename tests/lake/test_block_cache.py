"""Blocks that are decompressed as far as rows need them, against whole ones."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.block import BlockEncoder, DamagedBlockError, read_head
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import BlockCache, FirstFrames
from game_rl.lake.view import EvictedError
from tests.examples import examples
from tests.lake.test_block import some_block
from tests.lake.test_sampler import filled


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=12),
    st.integers(1, 40),
)
def test_the_first_frames_are_those_of_the_whole_block(
    seed: int, kinds: list[tuple[bool, int]], width: int
) -> None:
    """XORed or not, block after block in the same memory, whose first size is too small."""
    schema = LakeSchema(
        FramePacking((1, 1, width)), frame_stack=1, block_frames=3 + seed % 40, level=1
    )
    rng, first_frames = np.random.default_rng(seed), FirstFrames(schema)
    encoder = BlockEncoder(schema)
    for is_still, n in kinds:
        block = some_block(rng, schema, n, is_still=is_still)
        data = encoder.encode(block)
        for end in rng.integers(1, n + 1, 3).tolist():
            found = first_frames.decode(read_head(data), data, end)
            np.testing.assert_array_equal(found, block.frames[:end])


def test_more_frames_than_a_block_has_are_an_error() -> None:
    schema = LakeSchema(FramePacking((1, 1, 9)), frame_stack=1, level=1)
    data = BlockEncoder(schema).encode(
        some_block(np.random.default_rng(0), schema, 5, is_still=True)
    )
    with pytest.raises(DamagedBlockError, match="45 bytes where 54 were expected"):
        FirstFrames(schema).decode(read_head(data), data, 6)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.integers(0, 600))
def test_whatever_is_asked_for_is_the_views_whole_block(seed: int, limit_bytes: int) -> None:
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        view = filled(Path(folder), {"a": 60, "b": 20}).view()
        cache = BlockCache(view, limit_bytes)
        for number in rng.integers(len(view.heads), size=50).tolist():
            whole = view.block(number)
            end = int(rng.integers(1, len(whole.frames) + 1))
            frames = cache.frames(number, end)
            np.testing.assert_array_equal(frames[:end], whole.frames[:end])
            np.testing.assert_array_equal(cache.columns(number).flags, whole.columns.flags)
            np.testing.assert_array_equal(cache.columns(number).rewards, whole.columns.rewards)


def test_the_first_blocks_stay_as_far_as_there_is_room_and_no_others(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": 60}).view()
    sizes = [view.block(number).nbytes for number in range(len(view.heads))]
    cache = BlockCache(view, sum(sizes[:3]))
    for number in range(len(sizes)):
        cache.frames(number, 1)
    assert cache.n_bytes == sum(sizes[:3])
    for path in tmp_path.glob("*.segment"):
        path.unlink()
    assert len(cache.frames(2, 1)) == view.heads["n_rows"][2]
    with pytest.raises(EvictedError):
        cache.frames(3, 1)


def test_a_changed_byte_of_frames_that_no_row_needs_is_noticed(tmp_path: Path) -> None:
    lake = filled(tmp_path, {"a": 60})
    view = Lake.open(lake.path).view()
    path = view.path_of(0)
    data = bytearray(path.read_bytes())
    data[data.index(view.encoded(0)) + len(view.encoded(0)) - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(LakeError, match="its checksum is wrong"):
        BlockCache(view, 0).frames(0, 1)
