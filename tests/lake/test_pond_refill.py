"""A replay filled from its Lake against the one that went on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.buffers.pond import Pond
from game_rl.envs.packing import FramePacking
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.pond_refill import refill_pond
from tests.buffers.scripted_env import scripted_vec_env
from tests.buffers.test_replay_buffer import packed, play
from tests.examples import examples

PACKING = FramePacking((1, 3, 4), bits=4)
GAMMA = 0.9


def make_feed(
    path: Path, *, n_envs: int, frame_stack: int, capacity: int | None = None
) -> LakeFeed:
    schema = LakeSchema(PACKING, frame_stack=frame_stack, block_frames=frame_stack + 3)
    lake = Lake.create(path, schema, capacity=Capacity(transitions=capacity))
    return LakeFeed(lake, "run", n_envs=n_envs, segment_transitions=capacity and capacity // 8)


def refilled(replay: Any, pond: Pond, feed: LakeFeed, name: str) -> Pond:
    """A new Pond with what `pond` had when the Lake was marked."""
    position, next_transitions = pond.position(), feed.next_transitions
    mark = feed.pin(name)
    assert mark is not None
    new: Pond = replay().store
    new.load_position(position)
    refill_pond(new, feed.lake.view(mark), next_transitions=next_transitions)
    return new


def into(feed: LakeFeed, replay: Any) -> Any:
    """The `add` of a replay that hands all timesteps to the Lake instead."""
    replay.store = feed
    return replay.add


def assert_same(ours: Pond, theirs: Pond, n_step: int) -> None:
    """The same timesteps at the same places, and the same draws."""
    held = theirs.held()
    for found, expected in zip(ours.held(), held, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert ours.n_appended == theirs.n_appended
    kept = [p.batch(*held, n_step=n_step, gamma=GAMMA, device="cpu") for p in (ours, theirs)]
    drawn = [p.sample(20, n_step=n_step, gamma=GAMMA) for p in (ours, theirs)]
    for batches in (kept, drawn):
        for found, expected in zip(*batches, strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


@settings(max_examples=examples(60))
@given(
    capacity=st.integers(9, 60),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    frame_stack=st.sampled_from([1, 2, 4]),
    n_envs=st.sampled_from([1, 3]),
    seed=st.integers(0, 1000),
    is_limited=st.booleans(),
)
def test_a_replay_filled_from_the_lake_is_the_one_that_went_on(
    tmp_path_factory: pytest.TempPathFactory,
    capacity: int,
    lengths: list[int],
    frame_stack: int,
    n_envs: int,
    seed: int,
    is_limited: bool,
) -> None:
    """Each length is played between two resumes; from the second on the refilled one goes on."""
    path = tmp_path_factory.mktemp("lake")
    vec_env = scripted_vec_env(PACKING, n_envs=n_envs, frame_stack=frame_stack, seed=seed)

    def replay() -> Any:
        return packed(vec_env, PACKING, frame_stack=frame_stack, buffer_size=capacity)

    straight, resumed, obs = replay(), replay(), None
    for number, length in enumerate(lengths):
        limit = 2 * capacity if is_limited else None
        feed = make_feed(path, n_envs=n_envs, frame_stack=frame_stack, capacity=limit)
        adds = straight.add, resumed.add, into(feed, replay())
        obs = play(vec_env, length, *adds, obs=obs)
        pond = refilled(replay, resumed.store, feed, f"{number}")
        feed.close()
        resumed = replay()
        resumed.store = pond
        assert_same(pond, straight.store, n_step=3)


def test_what_the_lake_lost_cannot_be_drawn_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    vec_env = scripted_vec_env(PACKING, n_envs=2, frame_stack=4)

    def replay() -> Any:
        return packed(vec_env, PACKING, frame_stack=4, buffer_size=200)

    whole = replay()
    feed = make_feed(tmp_path, n_envs=2, frame_stack=4)
    adds = whole.add, into(feed, replay())
    obs = play(vec_env, 20, *adds)
    feed.hold()
    obs = play(vec_env, 10, *adds, obs=obs)
    feed.go_on()
    play(vec_env, 15, *adds, obs=obs)
    pond = refilled(replay, whole.store, feed, "x")
    feed.close()
    assert len(pond) == 2 * (20 + 15)
    rewards = [
        np.sort(p.batch(*p.held(), n_step=1, gamma=GAMMA, device="cpu").rewards.numpy().ravel())
        for p in (pond, whole.store)
    ]
    assert np.isin(rewards[0], rewards[1]).all()
    batch = pond.sample(50, n_step=3, gamma=GAMMA)
    assert np.isfinite(batch.rewards.numpy()).all()


def test_a_lake_that_got_nothing_after_a_pause_leaves_its_newest_out(tmp_path: Path) -> None:
    vec_env = scripted_vec_env(PACKING, n_envs=1, frame_stack=2)

    def replay() -> Any:
        return packed(vec_env, PACKING, frame_stack=2, buffer_size=100)

    whole = replay()
    feed = make_feed(tmp_path, n_envs=1, frame_stack=2)
    adds = whole.add, into(feed, replay())
    obs = play(vec_env, 20, *adds)
    feed.hold()
    play(vec_env, 5, *adds, obs=obs)
    pond = refilled(replay, whole.store, feed, "x")
    feed.close()
    assert len(pond) == 20


def test_the_next_append_after_a_refill_cuts_where_the_episode_does_not_go_on(
    tmp_path: Path,
) -> None:
    vec_env = scripted_vec_env(PACKING, n_envs=1, frame_stack=2)

    def replay() -> Any:
        return packed(vec_env, PACKING, frame_stack=2, buffer_size=100)

    whole = replay()
    feed = make_feed(tmp_path, n_envs=1, frame_stack=2)
    adds = whole.add, into(feed, replay())
    play(vec_env, 20, *adds)
    pond = refilled(replay, whole.store, feed, "x")
    before = len(pond)
    again = replay()
    again.store = pond
    other = scripted_vec_env(PACKING, n_envs=1, frame_stack=2, seed=99)
    feed.leave_gap()
    adds = again.add, into(feed, replay())
    play(other, 20, *adds)
    assert len(pond) == before + 20
    from_lake = refilled(replay, pond, feed, "y")
    feed.close()
    assert_same(from_lake, pond, n_step=3)


def test_what_a_capacity_hides_cannot_be_drawn_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    vec_env = scripted_vec_env(PACKING, n_envs=2, frame_stack=4)

    def replay() -> Any:
        return packed(vec_env, PACKING, frame_stack=4, buffer_size=200)

    whole = replay()
    feed = make_feed(tmp_path, n_envs=2, frame_stack=4, capacity=26)
    adds = whole.add, into(feed, replay())
    play(vec_env, 50, *adds)
    pond = refilled(replay, whole.store, feed, "x")
    feed.close()
    held = pond.held()
    assert np.bincount(held[0]).tolist() == [13, 13]
    ours, theirs = (
        p.batch(*held, n_step=3, gamma=GAMMA, device="cpu") for p in (pond, whole.store)
    )
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
