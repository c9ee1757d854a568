"""A training's feed when the disk fails, is held back, and comes back."""

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.buffers.layout import Transitions
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.files.run_dir import RunDir
from game_rl.lake.block import decode
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed, make_lake_feed
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.mark import LakeState, Mark, new_stream
from game_rl.lake.segment import SEALED, scan
from game_rl.lake.writer import LakeWriter
from tests.buffers.scripted_env import N_ACTIONS, scripted_vec_env
from tests.lake.plays import Play
from tests.preflight.conftest import make_config

PACKING = FramePacking((1, 3, 4), bits=4)
SCHEMA = LakeSchema(PACKING, frame_stack=3, block_frames=8)


class Training:
    """Plays, and keeps all that it gave its feed."""

    def __init__(self, feed: LakeFeed, *, n_envs: int = 2) -> None:
        self.feed = feed
        self._vec_env = scripted_vec_env(PACKING, n_envs=n_envs, frame_stack=3)
        self._obs: Any = self._vec_env.reset()
        self._rng = np.random.default_rng(0)
        self.rewards: list[np.ndarray[Any, Any]] = []

    def steps(self, n: int) -> None:
        for _ in range(n):
            actions = self._rng.integers(N_ACTIONS, size=self._vec_env.num_envs)
            new_obs, rewards, dones, infos = self._vec_env.step(actions)
            next_obs = np.array(new_obs)
            for i in np.flatnonzero(dones):
                next_obs[i] = infos[i]["terminal_observation"]
            truncated = np.array([info["TimeLimit.truncated"] for info in infos])
            step = Transitions(
                observations=self._obs,
                frames=PACKING.pack(self._obs[:, -1:]),
                actions=actions,
                rewards=rewards,
                next_frames=PACKING.pack(next_obs[:, -1:]),
                terminated=dones & ~truncated,
                truncated=truncated,
            )
            self.feed.append(step)
            self.rewards.append(rewards.copy())
            self._obs = new_obs


def stored_rewards(lake: Lake, env: int) -> list[float]:
    view = lake.view()
    numbers = np.flatnonzero(view.block_sequences & 0xFFFFFFFF == env)
    columns = [view.columns(number) for number in numbers.tolist()]
    return [float(reward) for c in columns for reward in c.rewards[c.rows]]


@contextmanager
def writes_that_fail(code: int) -> Iterator[None]:
    real = os.write

    def write(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    try:
        os.write = write
        yield
    finally:
        os.write = real


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_fails_is_told_once_and_does_not_end_the_training(
    tmp_path: Path, code: int
) -> None:
    """EROFS and EACCES end the Lake's writer; a checkpoint makes another one."""
    told: list[str] = []
    lake = Lake.create(tmp_path, SCHEMA)
    feed = LakeFeed(lake, "run", n_envs=2, tell=told.append)
    training = Training(feed)
    training.steps(20)
    assert feed.pin("a") is not None
    with writes_that_fail(code):
        training.steps(40)
        feed._seal()
        training.steps(20)
        assert feed.is_paused
        feed._seal()
    assert [os.strerror(code) in text for text in told] == [True]
    assert feed.pin("b") is not None
    training.steps(20)
    assert feed.pin("c") is not None
    assert not feed.is_paused
    feed.close()
    assert len(told) == 2
    assert "grows again" in told[1]
    for env in range(2):
        rewards = [float(step[env]) for step in training.rewards]
        assert stored_rewards(lake, env) == rewards[:20] + rewards[80:]


def test_what_is_held_back_is_a_gap_that_no_n_step_return_crosses(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    feed = LakeFeed(lake, "run", n_envs=1)
    training = Training(feed, n_envs=1)
    training.steps(10)
    feed.hold()
    training.steps(10)
    assert feed.is_paused
    feed.go_on()
    training.steps(10)
    feed.close()
    view = lake.view()
    firsts, counts = view.heads["first"].astype(int), view.n_transitions
    gaps = firsts[1:] - (firsts + counts)[:-1]
    assert np.count_nonzero(gaps) == 1
    rewards = [float(step[0]) for step in training.rewards]
    assert stored_rewards(lake, 0) == rewards[:10] + rewards[20:]


def test_a_lake_that_cannot_be_written_at_the_start_is_an_error(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    (tmp_path / "lake" / "run.00000000-00000000-abcdef.open").mkdir()  # not a file
    with pytest.raises(LakeError, match="free some space or allow writing there"):
        LakeFeed(lake, "run", n_envs=1)


def test_the_same_play_is_always_cut_into_the_same_blocks(tmp_path: Path) -> None:
    """Also after gaps, where it goes on within episodes; each is ENV:FIRST+TIMESTEPS."""
    lake = Lake.create(tmp_path, SCHEMA)
    feed = LakeFeed(lake, "run", n_envs=4)
    training = Training(feed, n_envs=4)
    training.steps(9)
    feed.leave_gap()
    training.steps(12)
    feed.hold()
    training.steps(3)
    feed.go_on()
    training.steps(8)
    feed.close()
    content, order = sha256(), []
    for data in scan(lake.files(SEALED)[0]):
        block = decode(data, SCHEMA)
        columns = block.columns
        order.append(f"{block.env}:{block.first}+{len(columns.rows)}")
        for array in (columns.flags, columns.actions, columns.rewards, block.frames):
            content.update(array.tobytes())
    assert " ".join(order) == (
        "3:0+4 1:0+5 2:0+5 0:0+6 1:5+4 0:6+3 2:5+4 3:4+5 1:10+4 2:10+4 3:10+4 0:10+5 1:14+4 0:15+3 "
        "3:14+5 2:14+6 1:18+4 0:18+4 2:20+2 3:19+3 0:23+4 3:23+4 1:23+5 2:23+5 2:28+3 0:27+4 "
        "1:28+3 3:27+4"
    )
    digest = "46465add06baa6d390e45054e986d154bdcab0766129887b64d1529e8654c6d4"
    assert content.hexdigest() == digest


def test_each_run_keeps_and_forgets_its_own_pins(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    feeds = [LakeFeed(lake, name, n_envs=2) for name in ("one", "two")]
    for feed in feeds:
        Training(feed).steps(10)
        for name in ("a", "b"):
            feed.pin(name)
    feeds[0].keep_pins(["b"])
    feeds[1].unpin("b")
    pins = {path.stem for path in (tmp_path / "pins").glob("*.json")}
    assert pins == {"one.b", "two.a"}
    for feed in feeds:
        feed.close()


def test_going_back_takes_back_one_stream_alone(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    feeds = [LakeFeed(lake, name, n_envs=1) for name in ("one", "two")]
    trainings = [Training(feed, n_envs=1) for feed in feeds]
    for training in trainings:
        training.steps(10)
    mark = feeds[0].pin("a")
    for training in trainings:
        training.steps(10)
    for feed in feeds:
        feed.close()
    assert mark is not None
    assert set(mark.sequences) == {"one/0"}
    lake.resume(mark, "one")
    assert dict(lake.view().sequences) == {"one/0": 10, "two/0": 20}


def make(
    run_dir: Path,
    *,
    saved: LakeState | None = None,
    goes_on: bool = False,
    packing: FramePacking = PACKING,
    **lake: Any,
) -> LakeFeed:
    config = make_config(
        lake=lake,
        env={"n_envs": 2, "frame_stack": 3},
    )
    run_dir.mkdir(exist_ok=True)
    made = make_lake_feed(
        config,
        RunDir(run_dir),
        observation_format=ObservationFormat(packing, 3),
        n_actions=5,
        goes_on=goes_on,
        saved=saved,
        tell=lambda _: None,
    )
    assert made is not None
    return made


def saved_at(stream: str, mark: Mark) -> LakeState:
    return new_stream(stream).model_copy(update={"mark": mark.to_json()})


def played(feed: LakeFeed, n: int) -> LakeFeed:
    Training(feed).steps(n)
    feed.pin("000000000001")
    feed.close()
    return feed


def test_a_config_without_a_lake_makes_none(tmp_path: Path) -> None:
    made = make_lake_feed(
        make_config(),
        RunDir(tmp_path),
        observation_format=ObservationFormat(PACKING, 4),
        n_actions=5,
        goes_on=False,
        saved=None,
        tell=lambda _: None,
    )
    assert made is None


def streams(lake: Path) -> dict[str, int]:
    """Rows of each."""
    view, found = Lake.open(lake).view(), Counter[str]()
    for sequence, rows in zip(view.block_sequences.tolist(), view.n_transitions, strict=True):
        found[view.streams[sequence >> 32]] += int(rows)
    return dict(found)


def test_a_stream_is_named_by_the_id_of_its_run(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    for name in ("my run", "another"):
        played(make(tmp_path / name, path=shared), 5)
    ids = {RunDir(tmp_path / name).identity().id for name in ("my run", "another")}
    assert streams(shared) == dict.fromkeys(ids, 2 * 5)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_run_that_begins_again_deletes_its_own_stream_and_nothing_else(
    tmp_path: Path, is_shared: bool
) -> None:
    run_dir = RunDir(tmp_path / "run")
    path = tmp_path / "shared" if is_shared else run_dir.lake
    played(make(tmp_path / "other", path=path), 7)  # or what `game-rl replay import` wrote
    places: dict[str, Any] = {"path": path} if is_shared else {}
    for _ in range(2):
        played(make(run_dir.root, **places), 5)
    own, other = run_dir.identity().id, RunDir(tmp_path / "other").identity().id
    assert streams(path) == {own: 2 * 5, other: 2 * 7}
    assert {pin.name.partition(".")[0] for pin in (path / "pins").iterdir()} == {own, other}


def test_a_checkpoint_without_a_mark_loses_nothing_of_what_the_lake_has(tmp_path: Path) -> None:
    played(make(tmp_path), 5)
    played(make(tmp_path, goes_on=True), 5)
    assert len(Lake.open(tmp_path / "lake").view()) == 2 * 2 * 5


def test_pins_of_checkpoints_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    feed = make(tmp_path)
    Training(feed).steps(5)
    (tmp_path / "checkpoints" / "000000000002").mkdir(parents=True)
    mark = feed.pin("000000000002")
    feed.pin("000000000003")
    feed.close()
    assert mark is not None
    make(tmp_path, goes_on=True, saved=saved_at(feed.stream, mark)).close()
    pins = [path.stem for path in (tmp_path / "lake" / "pins").glob("*.json")]
    assert pins == [f"{feed.stream}.000000000002"]


@pytest.mark.parametrize("limit", [1_000, pytest.param(4_000, marks=pytest.mark.slow)])
def test_the_capacity_holds_and_whole_files_of_it_are_small(tmp_path: Path, limit: int) -> None:
    feed = make(tmp_path, capacity_transitions=limit)
    training = Training(feed)
    for _ in range(3):
        training.steps(limit)
        feed.lake.view()
    feed.close()
    view = feed.lake.view()
    assert len(view) == limit
    rows = sum(segment.n_transitions for segment in view.segments)
    assert rows <= (Capacity(transitions=limit).most_on_disk or 0) + 2 * 64  # a block of each env


def test_a_folder_that_cannot_be_one_and_a_lake_of_other_frames_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LakeError, match="name another folder"):
        make(tmp_path / "run", path=tmp_path / "file")
    make(tmp_path / "run", path=tmp_path / "lake").close()
    with pytest.raises(LakeError, match="name another folder, or give the run the observation"):
        make(tmp_path / "run", path=tmp_path / "lake", packing=FramePacking((1, 3, 4), bits=2))


def test_a_resumed_run_keeps_the_stream_of_its_checkpoint(tmp_path: Path) -> None:
    """Streams of older versions have other names."""
    feed = make(tmp_path)
    lake = feed.lake
    feed.close()
    with LakeWriter(lake, "run", n_envs=2) as writer:
        Play(lake.schema, np.random.default_rng(0), 2).steps(writer, 5)
    mark = lake.pin("run.000000000001", "run")
    resumed = make(tmp_path, goes_on=True, saved=saved_at("run", mark))
    assert (resumed.stream, resumed.next_transitions) == ("run", [5, 5])
    resumed.close()


def test_others_see_the_rows_after_as_many_timesteps_as_the_config_says(tmp_path: Path) -> None:
    feed = make(tmp_path, seal_every_timesteps=1_000)
    Training(feed).steps(700)
    assert feed._writer is not None
    feed._writer._waiting.join()
    assert len(Lake.open(feed.lake.path).view()) == 1_000
    feed.close()
    assert len(Lake.open(feed.lake.path).view()) == 1_400
