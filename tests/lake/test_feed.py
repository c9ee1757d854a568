"""A training's feed when the disk fails, is held back, and comes back."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_schema import LakeSchema
from tests.buffers.scripted_env import N_ACTIONS, scripted_vec_env

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
            self.feed.append(
                observations=self._obs,
                frames=PACKING.pack(self._obs[:, -1:]),
                actions=actions,
                rewards=rewards,
                next_frames=PACKING.pack(next_obs[:, -1:]),
                terminated=dones & ~truncated,
                truncated=truncated,
            )
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
