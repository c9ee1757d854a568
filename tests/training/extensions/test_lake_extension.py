"""When a growing Lake has filled the disk, against adding it up; and what is done before."""

import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_schema import LakeSchema
from game_rl.system.units import GIB, MIB
from game_rl.training import extension as extensions
from game_rl.training.extensions import lake_extension
from game_rl.training.extensions.lake_extension import Growth, LakeGrowthCallback, project
from game_rl.training.train import resume, train
from tests.callbacks.conftest import make_model as make_model  # fixtures
from tests.callbacks.conftest import run_dir as run_dir
from tests.lake.test_lake_feed import Training
from tests.tiny_run import MakeConfig, command, train_once

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
        capacity=Capacity(most_transitions, most_bytes),
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

    class Watch(BoundaryCallback):
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


ALGORITHMS = {
    "ppo": "algorithm={n_steps: 16, batch_size: 16, n_epochs: 1}",
    "dqn": "algorithm={name: dqn, replay: {capacity: 60}, learning_starts: 40, "
    "batch_size: 16, n_step: 2}",
    "pqn": "algorithm={name: pqn, n_steps: 16, batch_size: 16}",
}
Timesteps = list[tuple[Any, ...]]


def console() -> Console:
    return Console(file=StringIO(), width=1000)


def told(by: Console) -> str:
    assert isinstance(by.file, StringIO)
    return by.file.getvalue()


def timesteps(path: Path, stream: str | None = None) -> dict[int, Timesteps]:
    """All of a Lake, by env, one after the other."""
    lake = Lake.open(path)
    view = lake.view()
    streams = sorted({sequence.partition("/")[0] for sequence in view.sequences})
    found: dict[int, Timesteps] = {}
    for number, sequence in enumerate(view.block_sequences.tolist()):
        if stream not in (None, streams[sequence >> 32]):
            continue
        block = view.block(number)
        columns, frame_stack = block.columns, lake.schema.frame_stack
        sources = columns.rows[:, None] - np.arange(frame_stack - 1, -1, -1)
        blank = sources < columns.starts[columns.rows][:, None]
        stacks = block.frames[np.where(blank, 0, sources)]
        stacks[blank] = 0
        for n, row in enumerate(columns.rows.tolist()):
            ending = bool(columns.terminated[row]), bool(columns.ended[row])
            value = (int(columns.actions[row]), float(columns.rewards[row]), *ending)
            after = block.frames[row + 1].tobytes()
            number_in_sequence = block.first + n
            found.setdefault(sequence & 0xFFFFFFFF, []).append(
                (number_in_sequence, *value, stacks[n].tobytes(), after)
            )
    return found


def weights(run_dir: RunDir, name: int) -> dict[str, torch.Tensor]:
    return dict(Checkpoint(run_dir.checkpoint(name)).policy())


def assert_same_weights(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dqn", "ppo", "pqn"])
def test_a_run_that_was_broken_off_after_later_seals_is_the_run_that_was_not(
    name: str, make_config: MakeConfig
) -> None:
    """Twice, the second time from a checkpoint that the resumed run has made."""
    config = make_config(
        name, ALGORITHMS[name], "lake={}", "recording.episodes=0", "checkpoints.keep_last=9"
    )
    train(config, command(console()))
    run_dir = RunDir(config.run_dir)
    straight, whole = weights(run_dir, 192), timesteps(run_dir.lake)
    assert {env: len(found) for env, found in whole.items()} == {0: 96, 1: 96}
    for last in (64, 128):
        for path in run_dir.checkpoints_newest_first():
            if int(path.name) > last:
                shutil.rmtree(path)
        output = console()
        resume(config.run_dir, command(output))
        assert f"resuming from timestep {last}" in told(output)
        assert "bit for bit" not in told(output)
        assert_same_weights(weights(run_dir, 192), straight)
        assert timesteps(run_dir.lake) == whole


@pytest.mark.slow
def test_a_checkpoint_has_a_mark_instead_of_the_replay_and_goes_with_its_pin(
    make_config: MakeConfig,
) -> None:
    config = make_config(
        "dqn", ALGORITHMS["dqn"], "lake={}", "recording.episodes=0", "checkpoints.keep_last=1"
    )
    train(config, command(console()))
    run_dir = RunDir(config.run_dir)
    kept = [path.name for path in run_dir.checkpoints_newest_first()]
    for path in run_dir.checkpoints_newest_first():
        files = {file.name for file in path.iterdir()}
        assert "lake.json" in files
        assert "replay.safetensors" not in files
    pins = {path.stem for path in (run_dir.lake / "pins").glob("*.json")}
    assert pins == {f"{run_dir.identity().id}.{name}" for name in kept}


@pytest.mark.slow
def test_a_run_that_was_killed_before_its_first_checkpoint_begins_its_lake_again(
    make_config: MakeConfig,
) -> None:
    config = make_config("pqn", ALGORITHMS["pqn"], "lake={}", "recording.episodes=0")
    train_once(config)
    run_dir = RunDir(config.run_dir)
    whole = timesteps(run_dir.lake)
    heads = Lake.open(run_dir.lake).view().heads
    versions = {*heads["first_version"].tolist(), *heads["last_version"].tolist()}
    assert versions == set(range(0, 12, 2))  # two epochs an update
    shutil.rmtree(run_dir.checkpoints)
    resume(config.run_dir, command(console()))
    assert timesteps(run_dir.lake) == whole


@pytest.mark.slow
def test_two_runs_write_one_lake_and_resuming_one_leaves_the_other(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    overrides = (ALGORITHMS["pqn"], f"lake.path={shared}", "recording.episodes=0")
    first, second = (make_config(name, *overrides) for name in ("one", "two"))
    for config in (first, second):
        train(config, command(console()))
    streams = {sequence.partition("/")[0] for sequence in Lake.open(shared).view().sequences}
    assert streams == {RunDir(config.run_dir).identity().id for config in (first, second)}
    before = {stream: timesteps(shared, stream) for stream in streams}
    shutil.rmtree(RunDir(first.run_dir).checkpoint(192))
    resume(first.run_dir, command(console()))
    assert {stream: timesteps(shared, stream) for stream in streams} == before


@pytest.mark.slow
def test_a_run_may_get_a_lake_when_it_is_resumed(make_config: MakeConfig) -> None:
    config = make_config("pqn", "algorithm={name: pqn, n_steps: 16, batch_size: 16}")
    train(config, command(console()))
    run_dir = RunDir(config.run_dir)
    shutil.rmtree(run_dir.checkpoint(192))
    output = console()
    overrides = ["lake={}", "recording.episodes=0"]
    resume(config.run_dir, command(output), overrides=overrides)
    assert "lake.on_full: None -> pause" in told(output)
    assert {env: len(found) for env, found in timesteps(run_dir.lake).items()} == {0: 32, 1: 32}


@pytest.mark.slow
def test_a_lake_that_had_no_space_is_told_and_a_resumed_run_says_what_its_replay_lacks(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config("dqn", ALGORITHMS["dqn"], "lake={}", "recording.episodes=0")
    output = console()
    with monkeypatch.context() as patched:
        patched.setattr(lake_extension, "LAKE_MARGIN_BYTES", 2**60)
        patched.setattr(extensions, "FREQUENT_BOUNDARIES_TIMESTEPS", 32)
        train(config, command(output))
    assert "stops growing" in told(output)
    run_dir = RunDir(config.run_dir)
    assert len(Lake.open(run_dir.lake).view()) < 192
    shutil.rmtree(run_dir.checkpoint(192))
    output = console()
    resume(config.run_dir, command(output))
    assert "the replay lacks" in told(output)
    assert run_dir.checkpoint(192).is_dir()


@pytest.mark.slow
def test_a_lake_without_a_file_that_the_checkpoint_needs_is_told_with_the_way_on(
    make_config: MakeConfig,
) -> None:
    config = make_config("pqn", ALGORITHMS["pqn"], "lake={}", "recording.episodes=0")
    train_once(config)
    run_dir = RunDir(config.run_dir)
    shutil.rmtree(run_dir.checkpoint(192))
    for path in run_dir.lake.glob("*.segment"):
        path.unlink()
    with pytest.raises(LakeError, match=r"is missing.*--set lake=null"):
        resume(config.run_dir, command(console()))
    resume(config.run_dir, command(console()), overrides=["lake=null"])
    assert run_dir.checkpoint(192).is_dir()
