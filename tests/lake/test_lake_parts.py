"""Lakes of observations with parts against plain lists of whole observations."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import minari
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.common.type_aliases import DictReplayBufferSamples

from game_rl.algorithms.mixed_replay import MixedReplay
from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.games.definition import load_game
from game_rl.games.parts.part_format import PartFormat, Stretch
from game_rl.interchange.minari_export import export_minari
from game_rl.interchange.replay_export import export_replay
from game_rl.lake.block import BlockEncoder, decode, read_head
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import check_agreement
from game_rl.lake.pond_refill import refill_pond
from game_rl.lake.sampler import Sampler, observation_format_of
from game_rl.lake.segment import SEALED, read_header
from game_rl.lake.upkeep import lake_statistics, verify_lake
from game_rl.lake.view import LakeView
from game_rl.lake.writer import LakeWriter
from tests.buffers.part_plays import formats, parts_vec_env, some_parts
from tests.buffers.test_parts import EVENTS, FORM, GAMMA, PARTS, assert_same, packed, play
from tests.examples import examples
from tests.lake.part_plays import PartsPlay, PartsTransition, assert_rows_are, assert_same_parts
from tests.lake.test_block import some_block
from tests.lake.test_lake_pool import opened

SCHEMA = LakeSchema.of(FORM, n_actions=5)
seeds = st.integers(0, 2**16)


def assert_view_is(
    view: LakeView, stored: list[list[PartsTransition]], *, n_step: int = 1, cache_bytes: int = 0
) -> None:
    batch = Sampler(view, n_step=n_step, gamma=GAMMA, cache_bytes=cache_bytes).take(
        np.arange(len(view))
    )
    places = list(zip(batch.envs.tolist(), batch.numbers.tolist(), strict=True))
    assert places == [(env, at) for env, rows in enumerate(stored) for at in range(len(rows))]
    for i, (env, at) in enumerate(places):
        assert_rows_are(batch, i, stored[env], at, n_step=n_step, gamma=GAMMA)


@settings(max_examples=examples(60))
@given(
    formats,
    seeds,
    st.sampled_from([0.0, 0.1, 0.6]),
    st.integers(1, 5),
    st.integers(1, 2),
    st.sampled_from([0, 2_000]),
    st.booleans(),
)
def test_every_transition_is_the_lists_bit_for_bit(
    form: ObservationFormat,
    seed: int,
    end_chance: float,
    n_step: int,
    n_envs: int,
    cache_bytes: int,
    packs: bool,
) -> None:
    """Over blocks, segments, seals in the middle of episodes and n steps across all of them."""
    schema = replace(LakeSchema.of(form, n_actions=5, level=1), block_frames=form.stack + 4)
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder), schema)
        play = PartsPlay(form, np.random.default_rng(seed), n_envs, end_chance)
        with LakeWriter(lake, "a", n_envs=n_envs, segment_bytes=700) as writer:
            for n in (3, 1, 15):
                play.steps(writer, n, packs=packs)
                assert writer.seal()
        assert_view_is(lake.view(), play.stored, n_step=n_step, cache_bytes=cache_bytes)
        assert verify_lake(lake.path).damaged == {}
        assert Lake.open(lake.path).schema == schema


def test_an_episode_that_began_without_the_writer_has_its_stacks(tmp_path: Path) -> None:
    play = PartsPlay(FORM, np.random.default_rng(1), 2, end_chance=0)
    with LakeWriter(Lake.create(tmp_path / "before", SCHEMA), "a", n_envs=2) as writer:
        play.steps(writer, 5)
    play.stored = [[], []]
    with LakeWriter(Lake.create(tmp_path / "lake", SCHEMA), "a", n_envs=2) as writer:
        play.steps(writer, 5)
    assert_view_is(Lake.open(tmp_path / "lake").view(), play.stored, n_step=3)


@pytest.mark.parametrize("is_still", [True, False])
def test_xor_with_the_row_before_loses_nothing(is_still: bool) -> None:
    """Rows of 26 bytes, which are no whole words of eight."""
    rng = np.random.default_rng(0)
    rows = FORM.pack(some_parts(rng, FORM, 60))
    if is_still:
        rows = np.repeat(rows[:3], 20, axis=0)
        rows[:, 14] = np.arange(60)  # a number that counts
    block = replace(some_block(rng, SCHEMA, 60, is_still=is_still), frames=rows)
    data = BlockEncoder(SCHEMA).encode(block)
    assert bool(read_head(data)["is_delta"]) == is_still
    np.testing.assert_array_equal(decode(data, SCHEMA).frames, rows)


# ---------------------------------------------------------------------- schema


@given(formats, st.integers(2, 400))
def test_a_schema_gives_its_format_back_from_a_file(form: ObservationFormat, n: int) -> None:
    schema = LakeSchema.of(form, n_actions=n)
    again = LakeSchema.from_json(schema.to_json(), source="x")
    assert again == schema
    assert observation_format_of(again) == form
    assert again.packing.nbytes == form.row_bytes
    assert again.raw_bytes == 2 * form.nbytes + 8 + 12
    assert again.difference(schema) is None


def test_a_lake_without_parts_is_saved_as_ever() -> None:
    form = ObservationFormat(FramePacking((1, 72, 80), bits=4), 4)
    schema = LakeSchema.of(form, n_actions=6)
    assert json.loads(schema.to_json()) == {
        "kind": "lake of format 1",
        "packing": {"shape": [1, 72, 80], "bits": 4, "rounding": 3, "is_one_plane": False},
        "frame_stack": 4,
        "action_dtype": "uint8",
        "action_shape": [],
        "block_frames": 64,
        "level": 9,
        "crc32": json.loads(schema.to_json())["crc32"],
    }
    assert observation_format_of(schema) == form


def test_a_schema_of_many_parts_fits_the_header_of_a_file(tmp_path: Path) -> None:
    mixed = PartFormat("vector", (60,), 0, tuple(Stretch(1, 32 if i % 2 else 1) for i in range(60)))
    form = ObservationFormat(None, 2, tuple((f"part_{i:02d}", mixed) for i in range(30)))
    schema = LakeSchema.of(form, n_actions=5)
    assert len(schema.to_json()) > 8_192
    lake, play = Lake.create(tmp_path, schema), PartsPlay(form, np.random.default_rng(0))
    with LakeWriter(lake, "a", n_envs=1) as writer:
        play.steps(writer, 4)
    assert_view_is(Lake.open(tmp_path).view(), play.stored)
    assert read_header(lake.files(SEALED)[0])[0] == schema
    assert verify_lake(tmp_path).damaged == {}


CHANGED = {
    r"the part events is missing there, and this run has it": ("events", EVENTS),
    r"the part tiles: n_values: 5 there, 7 in this run": (
        "tiles",
        PartFormat.of_indices("grid", (1, 4, 5), 7, is_stacked=True),
    ),
    r"the part tiles: is_stacked: True there, False in this run": (
        "tiles",
        PartFormat.of_indices("grid", (1, 4, 5), 5),
    ),
    r"the part status: shape: \(5,\) there, \(6,\) in this run": (
        "status",
        PartFormat("vector", (6,), 0, (Stretch(6, 32),)),
    ),
}


@pytest.mark.parametrize("told", CHANGED)
def test_parts_that_differ_are_named_with_both_values(tmp_path: Path, told: str) -> None:
    name, part = CHANGED[told]
    parts = tuple(sorted({**dict(PARTS), name: part}.items()))
    ours = LakeSchema.of(ObservationFormat(FORM.screen, 3, parts), n_actions=5)
    Lake.create(tmp_path, SCHEMA)
    with pytest.raises(LakeError, match=told + r"; name another folder"):
        Lake.create(tmp_path, ours)


def test_fewer_parts_another_screen_and_none_at_all_are_told() -> None:
    def told(screen: FramePacking | None, parts: Any, stack: int = 3) -> str | None:
        return SCHEMA.difference(
            LakeSchema.of(ObservationFormat(screen, stack, parts), n_actions=5)
        )

    screen = FORM.screen
    assert told(screen, PARTS) is None
    assert told(screen, PARTS, 2) == "frame_stack: 3 there, 2 in this run"
    fewer = "the part tiles is there, and this run does not have it"
    assert told(screen, PARTS[:1]) == fewer
    without = "the part screen is there, and this run does not have it"
    assert told(None, PARTS) == without
    bits = "the part screen: bits: 2 there, 8 in this run"
    assert told(FramePacking((1, 3, 4)), PARTS) == bits
    assert told(screen, ()) == (
        "observations are the parts screen, status, tiles in 26 bytes, stacks of 3 there, "
        "stacks of 3 frames, 2 bits a pixel in this run"
    )


def test_a_run_that_sees_other_parts_cannot_learn_from_a_lake(tmp_path: Path) -> None:
    Lake.create(tmp_path, SCHEMA)
    config = RunConfig(game="duel", total_timesteps=100_000, run_dir=Path("runs/x"))
    ours = LakeSchema.of(ObservationFormat(FORM.screen, 3, PARTS[:1]), n_actions=5)
    told = r"the part tiles is there, and this run does not have it; this run cannot learn from"
    with pytest.raises(LakeError, match=told):
        check_agreement(LearnFromConfig(lakes=(tmp_path,)), ours, config, load_game("duel"))


# ---------------------------------------------------------------------- bytes


def test_a_flag_takes_a_bit_of_a_row() -> None:
    form = ObservationFormat(FramePacking((1, 72, 80), bits=4), 4, (("events", EVENTS),))
    schema = LakeSchema.of(form, n_actions=6)
    without = LakeSchema.of(ObservationFormat(form.screen, 4), n_actions=6)
    assert schema.row_bytes - without.row_bytes == 311 <= 320
    assert schema.block_frames == without.block_frames


def test_flags_that_nothing_compresses_take_320_bytes_a_timestep_on_the_disk(
    tmp_path: Path,
) -> None:
    form = ObservationFormat(None, 4, (("events", EVENTS),))
    lake = Lake.create(tmp_path, LakeSchema.of(form, n_actions=5))
    play = PartsPlay(form, np.random.default_rng(0), end_chance=0)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        play.steps(writer, 63 * 8)
    view = lake.view()
    assert view.heads["n_rows"].tolist() == [64] * 8
    assert 250 < view.heads["frames_bytes"].sum() / len(view) <= 320
    assert_view_is(view, play.stored)


def test_statistics_count_the_dicts_that_sb3_would_store(tmp_path: Path) -> None:
    lake, play = Lake.create(tmp_path, SCHEMA), PartsPlay(FORM, np.random.default_rng(0))
    with LakeWriter(lake, "a", n_envs=1) as writer:
        play.steps(writer, 30)
    found = lake_statistics(lake)
    assert found.observation == "the parts screen, status, tiles in 26 bytes, stacks of 3"
    sizes = FORM.space.sample()
    arrays = sum(array.nbytes for array in sizes.values())
    assert found.raw_bytes_per_transition == 2 * arrays + 8 + 3 * 4


# ---------------------------------------------------------------------- replay, learning, others


@settings(max_examples=examples(30))
@given(formats, st.integers(8, 40), st.lists(st.integers(1, 25), min_size=1, max_size=3), seeds)
def test_a_replay_filled_from_the_lake_is_the_one_that_went_on(
    form: ObservationFormat, capacity: int, lengths: list[int], seed: int
) -> None:
    schema = replace(LakeSchema.of(form, n_actions=5, level=1), block_frames=form.stack + 3)
    vec_env = parts_vec_env(form, n_envs=2, seed=seed)
    straight, resumed = (packed(vec_env, form, capacity) for _ in range(2))
    seen = None
    with tempfile.TemporaryDirectory() as folder:
        for number, length in enumerate(lengths):
            feed = LakeFeed(Lake.create(Path(folder), schema), "run", n_envs=2)
            lake = packed(vec_env, form, capacity)
            lake.store = feed  # type: ignore[assignment]  # gets all timesteps in its place
            seen = play(vec_env, length, straight.add, resumed.add, lake.add, seen=seen)
            position, next_transitions = resumed.store.position(), feed.next_transitions
            mark = feed.pin(f"{number}")
            assert mark is not None
            resumed = packed(vec_env, form, capacity)
            resumed.store.load_position(position)
            refill_pond(resumed.store, feed.lake.view(mark), next_transitions=next_transitions)
            feed.close()
            assert_same_draws(resumed.store, straight.store)


def assert_same_draws(ours: Any, theirs: Any) -> None:
    for found, expected in zip(ours.held(), theirs.held(), strict=True):
        np.testing.assert_array_equal(found, expected)
    if len(theirs):
        drawn = [pond.sample(20, n_step=3, gamma=GAMMA) for pond in (ours, theirs)]
        for found_, expected_ in zip(*drawn, strict=True):
            assert_same(found_, expected_)


class NoCurves:
    def record_mean(self, key: str, value: float | None) -> None:
        pass


def test_batches_mix_own_parts_with_those_of_two_lakes(tmp_path: Path) -> None:
    played = {}
    for name, n in (("a", 30), ("b", 20)):
        lake = Lake.create(tmp_path / name, SCHEMA)
        plays = PartsPlay(FORM, np.random.default_rng(n))
        with LakeWriter(lake, name, n_envs=1) as writer:
            plays.steps(writer, n)
        played[name] = plays.stored[0]
    pool = opened(tmp_path / "a", tmp_path / "b")
    drawn = pool.draw(np.random.default_rng(0), 200).batch
    assert set(drawn.streams.tolist()) == {0, 1}
    for i, (stream, at) in enumerate(zip(drawn.streams, drawn.numbers, strict=True)):
        rows = played[pool.streams[stream]]
        assert_rows_are(drawn, i, rows, int(at), n_step=3, gamma=GAMMA)
    vec_env = parts_vec_env(FORM, n_envs=2)
    own = packed(vec_env, FORM, 40, n_step=3)
    play(vec_env, 15, own.add)
    mixed = MixedReplay(
        pool,
        lambda _: 0.5,
        n_step=3,
        gamma=GAMMA,
        rng=np.random.default_rng(1),
        tell=lambda _: None,
    )
    found = mixed.sample(own, 16, timestep=0, curves=NoCurves())
    assert isinstance(found, DictReplayBufferSamples)
    other = mixed.sample_lakes(5, torch.device("cpu"), NoCurves(), prefix="offline")
    assert isinstance(other, DictReplayBufferSamples)
    for name, space in FORM.space.spaces.items():
        for seen in (found.observations, found.next_observations):
            assert seen[name].shape == (16, *(space.shape or ()))
            assert seen[name].numpy().dtype == space.dtype
        assert len(other.observations[name]) == 5
    assert found.discounts is not None
    assert mixed.n_own_drawn == 8


def test_a_lake_of_parts_is_exported_as_sb3s_buffer_of_dicts(tmp_path: Path) -> None:
    lake, plays = Lake.create(tmp_path / "lake", SCHEMA), PartsPlay(FORM, np.random.default_rng(3))
    with LakeWriter(lake, "a", n_envs=1) as writer:
        plays.steps(writer, 40)
    assert export_replay(lake, tmp_path / "out.pkl", n_actions=5) == 40
    loaded = load_from_pkl(tmp_path / "out.pkl")
    assert type(loaded) is DictReplayBuffer
    assert loaded.observation_space == FORM.space
    assert loaded.action_space == spaces.Discrete(5)
    assert loaded.full
    for at, row in enumerate(plays.stored[0]):
        for arrays, expected in (
            (loaded.observations, row.seen),
            (loaded.next_observations, row.following),
        ):
            assert_same_parts({name: array[at, 0] for name, array in arrays.items()}, expected)
        assert loaded.actions[at, 0] == row.action
        assert loaded.rewards[at, 0] == np.float32(row.reward)
    samples = loaded.sample(16)
    assert isinstance(samples, DictReplayBufferSamples)
    assert samples.observations["tiles"].shape == (16, 3, 4, 5)


def test_a_lake_of_parts_is_exported_to_minari(tmp_path: Path) -> None:
    lake, plays = Lake.create(tmp_path / "lake", SCHEMA), PartsPlay(FORM, np.random.default_rng(3))
    with LakeWriter(lake, "a", n_envs=1) as writer:
        plays.steps(writer, 60)
    episodes, _ = export_minari(lake, tmp_path / "set", n_actions=5)
    data = minari.MinariDataset(tmp_path / "set")
    assert data.observation_space == FORM.frame_space
    ends = [at for at, row in enumerate(plays.stored[0]) if row.terminated or row.truncated]
    assert episodes == len(ends) > 3
    first = 0
    for found, end in zip(data.iterate_episodes(), ends, strict=True):
        rows = plays.stored[0][first : end + 1]
        seen = [rows[0].seen, *(row.following for row in rows)]
        for name, length in (("screen", 1), ("status", 5), ("tiles", 1)):
            expected = [each[name][-length:] for each in seen]
            np.testing.assert_array_equal(found.observations[name], expected)
        first = end + 1
