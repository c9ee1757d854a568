"""Blocks come back bit for bit, XORed or not."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.packing import FramePacking
from game_rl.lake.block import (
    HEAD,
    Block,
    BlockEncoder,
    Columns,
    DamagedBlockError,
    decode,
    read_head,
)
from game_rl.lake.lake_schema import LakeSchema


def some_block(rng: np.random.Generator, schema: LakeSchema, n: int, *, is_still: bool) -> Block:
    """`is_still`: noise that hardly changes, which XOR makes much smaller."""
    noise = rng.integers(0, 256, (n, schema.packing.nbytes)).astype(np.uint8)
    if is_still:
        noise[1:] = noise[0]
        noise[np.arange(n), rng.integers(0, noise.shape[1], n)] ^= 1
    flags = np.full(n, 2, np.uint8)
    flags[-1] = 0
    return Block(
        env=int(rng.integers(1000)),
        first=int(rng.integers(2**40)),
        columns=Columns(
            flags,
            rng.integers(0, 256, n).astype(np.uint8),
            rng.normal(size=n).astype(np.float32),
            rng.integers(0, 2**32, n).astype(np.uint32),
        ),
        frames=noise,
    )


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.integers(1, 40),
)
def test_blocks_come_back(seed: int, still: list[bool], width: int) -> None:
    """Of frames with and without a whole number of 8-byte words."""
    schema = LakeSchema(FramePacking((1, 1, width)), frame_stack=1, level=1)
    rng = np.random.default_rng(seed)
    encoder = BlockEncoder(schema)
    for is_still in still:
        block = some_block(rng, schema, int(rng.integers(2, 64)), is_still=is_still)
        found = decode(encoder.encode(block), schema)
        assert (found.env, found.first) == (block.env, block.first)
        np.testing.assert_array_equal(found.frames, block.frames)
        for name in ("flags", "actions", "rewards", "versions"):
            expected = getattr(block.columns, name)
            np.testing.assert_array_equal(getattr(found.columns, name), expected)


def test_xor_is_used_where_it_pays_and_tried_again() -> None:
    schema = LakeSchema(FramePacking((1, 1, 64)), block_frames=64)
    rng = np.random.default_rng(0)
    encoder = BlockEncoder(schema)
    # Counting up: each frame is new, but its changes are few.
    rising = some_block(rng, schema, 64, is_still=False)
    rising.frames[:] = np.arange(64)[:, None] ^ rng.integers(0, 256, 64)
    coded = {}
    for name, block in (("rising", rising), ("noise", some_block(rng, schema, 64, is_still=False))):
        heads = [read_head(encoder.encode(block)) for _ in range(16)]
        coded[name] = [bool(head["is_delta"]) for head in heads]
    assert coded["rising"] == [True] * 16
    assert len(set(coded["noise"])) == 1


def test_a_block_cut_anywhere_is_damaged() -> None:
    schema = LakeSchema(FramePacking((1, 1, 8)))
    rng = np.random.default_rng(0)
    data = BlockEncoder(schema).encode(some_block(rng, schema, 9, is_still=True))
    assert len(data) > HEAD.itemsize
    for length in range(len(data)):
        with pytest.raises(DamagedBlockError):
            decode(data[:length], schema)


@pytest.mark.parametrize("is_more", [False, True])
def test_a_block_of_more_or_fewer_rows_than_its_head_says_is_damaged(is_more: bool) -> None:
    schema = LakeSchema(FramePacking((1, 1, 9)), frame_stack=1, level=1)
    block = some_block(np.random.default_rng(0), schema, 5, is_still=True)
    data = BlockEncoder(schema).encode(block)
    head = read_head(data).copy()
    head["n_rows"] = 6 if is_more else 4
    head["head_crc"] = crc32(head.tobytes()[:-4])
    with pytest.raises(DamagedBlockError, match=r"50 bytes where (60|40) were expected"):
        decode(head.tobytes() + data[HEAD.itemsize :], schema)
