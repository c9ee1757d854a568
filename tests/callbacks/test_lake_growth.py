"""When a growing Lake has filled the disk, against adding it up; and what is done before."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList

from game_rl.envs.packing import FramePacking
from game_rl.event_log import EventLog
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_schema import LakeSchema
from game_rl.run_dir import RunDir
from game_rl.system.units import GIB, MIB
from game_rl.training import lake_extension
from game_rl.training.lake_extension import Growth, LakeGrowthCallback, project
from tests.lake.test_feed import Training

MakeModel = Callable[..., PPO]
SCHEMA = LakeSchema(FramePacking((1, 3, 4), bits=4), frame_stack=3, block_frames=8)


@given(
    each=st.integers(1_000, 5_000),
    done=st.integers(2_000, 100_000),
    total=st.integers(2_000, 200_000),
    spare=st.integers(0, 10**9),
    most_transitions=st.none() | st.integers(1_000, 200_000),
    most_bytes=st.none() | st.integers(10**6, 10**9),
)
def test_the_disk_is_full_when_adding_up_timestep_by_timestep_says_so(
    each: int,
    done: int,
    total: int,
    spare: int,
    most_transitions: int | None,
    most_bytes: int | None,
) -> None:
    """The Lake takes `each` bytes a timestep and has run for one second per thousand of them."""
    found = project(
        Growth(0, 0, 0),
        Growth(done / 1_000, done, done * each),
        spare_bytes=spare,
        total_timesteps=total,
        most_transitions=most_transitions,
        most_bytes=most_bytes,
    )
    size, timesteps, full_at = done * each, done, None
    step = max(1, (total - done) // 500)
    while timesteps < total and full_at is None:
        more = min(step, total - timesteps)
        timesteps += more
        size += more * each
        limits = [most_bytes or size, (most_transitions or timesteps) * each]
        if min(size, *limits) - done * each > spare:
            full_at = timesteps
    assert (found is None) == (full_at is None)
    if found is not None and full_at is not None:
        assert full_at - step - 1 <= found.at_timesteps <= full_at
        assert found.in_s == pytest.approx((found.at_timesteps - done) / 1_000, abs=0.001)


def test_nothing_is_projected_from_next_to_nothing() -> None:
    start, now = Growth(0, 0, 0), Growth(1, 10, MIB - 1)
    assert project(start, now, spare_bytes=0, total_timesteps=10**9) is None


@pytest.fixture
def feed(tmp_path: Path) -> LakeFeed:
    return LakeFeed(Lake.create(tmp_path / "lake", SCHEMA), "run", n_envs=2)


def growth_callback(feed: LakeFeed, told: list[str]) -> LakeGrowthCallback:
    return LakeGrowthCallback(
        feed,
        total_timesteps=10**6,
        most_transitions=None,
        most_bytes=None,
        reserved_bytes=lambda: 0,
        events=EventLog(listeners=[lambda event: told.append(event.text)]),
    )


def test_a_full_disk_is_told_early_and_again_when_it_comes_near(
    make_model: MakeModel, feed: LakeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    free = iter([100 * GIB - n * 2 * GIB for n in range(50)])
    sizes = iter([n * 2 * GIB for n in range(50)])
    monkeypatch.setattr(lake_extension, "disk_free_bytes", lambda _: next(free))
    monkeypatch.setattr(Lake, "n_bytes", lambda _: next(sizes))
    make_model().learn(8 * 49, callback=CallbackList([growth_callback(feed, told)]))
    feed.close()
    assert all("disk will be full in" in text and "keeps growing like" in text for text in told)
    assert len(told) == 3  # fifty boundaries before, then a quarter of them, then a sixteenth
    assert "at timestep 407" in told[0]
    assert not feed.is_held


def test_at_the_margin_the_lake_stops_growing_and_goes_on_when_there_is_space(
    make_model: MakeModel, feed: LakeFeed, run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    free = iter([GIB, 100 * MIB, 100 * MIB, 300 * MIB, GIB, GIB])
    monkeypatch.setattr(lake_extension, "disk_free_bytes", lambda _: next(free))
    training = Training(feed)
    training.steps(10)
    seen: list[bool] = []

    class Watch(lake_extension.BoundaryCallback):
        def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
            seen.append(feed.is_paused)
            training.steps(5)

    make_model().learn(8 * 6, callback=CallbackList([growth_callback(feed, told), Watch()]))
    feed.close()
    assert seen == [False, True, True, True, False, False]
    assert ["stops growing: the disk has 100 MiB left" in text for text in told] == [True, False]
    assert "grows again" in told[1]
    assert len(feed.lake.view()) == 2 * (10 + 5 + 5 + 5)
    lines = (run_dir.tensorboard / "progress.csv").read_text(encoding="utf-8").splitlines()
    assert {"replay/lake_gib", "replay/lake_paused"} <= set(lines[0].split(","))


def test_a_lake_that_may_evict_lets_its_oldest_files_go_at_the_margin(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    feed = LakeFeed(lake, "run", n_envs=2, on_full="evict")
    training = Training(feed)
    for name in "abcd":
        training.steps(10)
        feed.pin(name)
    feed.keep_pins(["a"])  # what the others have may go, but for the newest file
    monkeypatch.setattr(
        lake_extension,
        "disk_free_bytes",
        lambda _: 256 * MIB + (1 if len(lake.view()) <= 40 else 0),
    )
    make_model().learn(8 * 2, callback=CallbackList([growth_callback(feed, told)]))
    assert not feed.is_held
    feed.close()
    assert len(told) == 1
    assert "the oldest files" in told[0]
    assert len(lake.view()) == 40
    assert all((lake.path / name).exists() for name in lake.pinned())
