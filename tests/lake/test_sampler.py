"""What is drawn from a Lake against a list of whole stacks."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.block import BlockEncoder, DamagedBlockError, FirstFrames, read_head
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import BlockCache, Sampler
from game_rl.lake.view import EvictedError
from game_rl.lake.writer import LakeWriter
from tests.examples import examples
from tests.lake.plays import SCHEMA, Play, assert_view_holds
from tests.lake.test_block import some_block

schemas = st.builds(
    lambda bits, channels, stack, spare, action: LakeSchema(
        FramePacking((channels, 3, 5), bits=bits, is_one_plane=bits == 2),
        frame_stack=stack,
        block_frames=stack + 2 + spare,
        action_dtype=action[0],
        action_shape=action[1],
        level=1,
    ),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 3]),
    st.integers(1, 5),
    st.integers(0, 20),
    st.sampled_from([("uint8", ()), ("int64", (2,)), ("float32", (1,))]),
)


@settings(max_examples=examples(60))
@given(
    schemas,
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([0, 300, 1 << 20]),
)
def test_every_transition_is_the_naive_stores_bit_for_bit(
    schema: LakeSchema, seed: int, end_chance: float, n_step: int, n_envs: int, cache_bytes: int
) -> None:
    """Over blocks, segments, seals in the middle of episodes and n steps across all of them."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder), schema)
        play = Play(schema, np.random.default_rng(seed), n_envs, end_chance)
        with LakeWriter(lake, "a", n_envs=n_envs, segment_bytes=700) as writer:
            for n in (3, 1, 40, 5):
                play.steps(writer, n)
                assert writer.seal()
        sequences = {f"a/{env}": rows for env, rows in enumerate(play.stored)}
        found = assert_view_holds(lake.view(), sequences, n_step=n_step, cache_bytes=cache_bytes)
        assert found == {
            (sequence, at) for sequence, rows in sequences.items() for at in range(len(rows))
        }


def test_frames_that_the_packing_cannot_hold_are_refused(tmp_path: Path) -> None:
    lake, play = Lake.create(tmp_path, SCHEMA), Play(SCHEMA, np.random.default_rng(0))
    blank = np.zeros((1, 1, 3, 5), np.uint8)
    good: dict[str, Any] = {
        "observations": blank.repeat(3, axis=1),
        "frames": blank,
        "next_frames": blank,
    }
    with LakeWriter(lake, "a", n_envs=1) as writer:

        def assert_is_refused(name: str) -> None:
            with pytest.raises(ValueError, match=r"a pixel of 84, which 2 bits .* cannot hold"):
                writer.append(
                    **good | {name: np.full_like(good[name], 84)},
                    actions=np.zeros(1),
                    rewards=np.zeros(1),
                    terminated=np.zeros(1, bool),
                    truncated=np.zeros(1, bool),
                )

        for name in good:
            assert_is_refused(name)
        play.steps(writer, 5)
        assert_is_refused("next_frames")
        play.steps(writer, 5)
    assert_view_holds(lake.view(), {"a/0": play.stored[0]})
    assert len(lake.view()) == 10


# ---------------------------------------------------------------------- how often what is drawn


def filled(path: Path, lengths: dict[str, int]) -> Lake:
    """Streams of so many transitions; the version rises by one every ten timesteps."""
    lake = Lake.create(path, SCHEMA)
    for seed, (stream, n) in enumerate(lengths.items()):
        play = Play(SCHEMA, np.random.default_rng(seed), end_chance=0.2)
        with LakeWriter(lake, stream, n_envs=1, segment_bytes=600) as writer:
            for step in range(n):
                play.version = step // 10
                play.step(writer)
    return lake


def chi_square(observed: np.ndarray, chances: np.ndarray) -> float:
    """In standard deviations above its mean."""
    wanted = observed.sum() * chances / chances.sum()
    assert wanted.min() >= 5
    freedom = len(observed) - 1
    value = ((observed - wanted) ** 2 / wanted).sum()
    return float((value - freedom) / np.sqrt(2 * freedom))


def counts(sampler: Sampler, n: int, batch: int) -> Counter[bytes]:
    """How often each stack was drawn; with 15 pixels x 3 frames no two are alike."""
    rng = np.random.default_rng(5)
    seen: Counter[bytes] = Counter()
    for _ in range(n):
        seen.update(
            a.tobytes() + b.tobytes()
            for drawn in [sampler.sample(rng, batch)]
            for a, b in zip(drawn.stacks, drawn.next_stacks, strict=True)
        )
    return seen


def test_uniform_draws_have_every_transition_alike(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": 90, "b": 33}).view()
    observed = np.array(list(counts(Sampler(view), 400, 32).values()))
    assert len(observed) == len(view) == 123
    assert abs(chi_square(observed, np.ones(123))) < 5


def test_streams_are_drawn_by_their_shares_whatever_they_stored(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": 200, "b": 20, "c": 50}).view()
    batch = Sampler(view, shares={"b": 0.75, "a": 0.25}).sample(np.random.default_rng(0), 4_000)
    names = [view.streams[number] for number in batch.streams.tolist()]
    observed = np.array([names.count(name) for name in ("a", "b", "c")])
    assert observed[2] == 0
    assert abs(chi_square(observed[:2], np.array([1.0, 3.0]))) < 5
    for stream, n in ((0, 200), (1, 20)):
        numbers = np.bincount(batch.numbers[batch.streams == stream], minlength=n)
        assert abs(chi_square(numbers, np.ones(n))) < 5


def test_the_same_generator_draws_the_same_batch(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": 90, "b": 33}).view()
    one, other = (
        Sampler(view, n_step=3, cache_bytes=limit).sample(np.random.default_rng(1), 64)
        for limit in (1, 1 << 20)
    )
    for name in ("stacks", "actions", "rewards", "next_stacks", "discounts", "versions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_sampler_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="no sealed transitions"):
        Sampler(Lake.create(tmp_path, SCHEMA).view())


def test_an_unknown_stream_is_named_with_those_there_are(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": 20, "b": 20}).view()
    with pytest.raises(LakeError, match=r"c has a share, but the Lake has the streams a, b"):
        Sampler(view, shares={"c": 1})
    with pytest.raises(LakeError, match="no stream has a share"):
        Sampler(view, shares={"c": 0, "a": 0})


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
