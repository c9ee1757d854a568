"""From a config to a Lake: where it is, what it goes back to, what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.feed import LakeFeed
from game_rl.lake.lake import Lake
from game_rl.lake.make_feed import make_lake_feed
from game_rl.lake.mark import Mark
from game_rl.run_dir import RunDir
from tests.lake.test_feed import Training
from tests.preflight.conftest import make_config

PACKING = FramePacking((1, 3, 4), bits=4)


def make(
    run_dir: Path,
    *,
    saved: tuple[str, Mark] | None = None,
    goes_on: bool = False,
    packing: FramePacking = PACKING,
    **feed: Any,
) -> LakeFeed:
    config = make_config(
        algorithm={"name": "pqn", "n_steps": 32, "batch_size": 64, "feed": feed},
        env={"n_envs": 2, "frame_stack": 3},
    )
    made = make_lake_feed(
        config,
        RunDir(run_dir),
        packing=packing,
        n_actions=5,
        goes_on=goes_on,
        saved=saved,
        tell=lambda _: None,
    )
    assert made is not None
    return made


def played(feed: LakeFeed, n: int) -> LakeFeed:
    Training(feed).steps(n)
    feed.pin("000000000001")
    feed.close()
    return feed


def test_a_config_without_a_lake_makes_none(tmp_path: Path) -> None:
    made = make_lake_feed(
        make_config(),
        RunDir(tmp_path),
        packing=PACKING,
        n_actions=5,
        goes_on=False,
        saved=None,
        tell=lambda _: None,
    )
    assert made is None


def test_a_run_that_begins_empties_its_own_lake_and_leaves_a_shared_one(tmp_path: Path) -> None:
    own = [played(make(tmp_path / "run", lake=True), 5).lake for _ in range(2)]
    assert own[0].path == own[1].path == tmp_path / "run" / "lake"
    assert len(own[1].view()) == 2 * 5
    shared = tmp_path / "shared"
    for _ in range(2):
        played(make(tmp_path / "my run", lake=shared), 5)
    assert len(Lake.open(shared).view()) == 2 * 2 * 5
    names = [sequence.partition("/")[0] for sequence in Lake.open(shared).view().sequences]
    assert all(name.startswith("my_run-") for name in names)


def test_a_checkpoint_without_a_mark_loses_nothing_of_what_the_lake_has(tmp_path: Path) -> None:
    played(make(tmp_path, lake=True), 5)
    played(make(tmp_path, lake=True, goes_on=True), 5)
    assert len(Lake.open(tmp_path / "lake").view()) == 2 * 2 * 5


def test_pins_of_checkpoints_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    feed = make(tmp_path, lake=True)
    Training(feed).steps(5)
    (tmp_path / "checkpoints" / "000000000002").mkdir(parents=True)
    mark = feed.pin("000000000002")
    feed.pin("000000000003")
    feed.close()
    assert mark is not None
    make(tmp_path, lake=True, goes_on=True, saved=("run", mark)).close()
    pins = [path.stem for path in (tmp_path / "lake" / "pins").glob("*.json")]
    assert pins == ["run.000000000002"]


@pytest.mark.parametrize("limit", [1_000, 4_000])
def test_the_capacity_holds_and_whole_files_of_it_are_small(tmp_path: Path, limit: int) -> None:
    feed = make(tmp_path, lake=True, capacity_transitions=limit)
    training = Training(feed)
    for _ in range(3):
        training.steps(limit)
        feed.lake.view()
    feed.close()
    assert limit * 3 / 4 <= len(feed.lake.view()) <= limit


def test_a_folder_that_cannot_be_one_and_a_lake_of_other_frames_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="name another folder"):
        make(tmp_path / "run", lake=tmp_path / "file")
    make(tmp_path / "run", lake=tmp_path / "lake").close()
    with pytest.raises(LakeError, match="name another folder, or give the run the observation"):
        make(tmp_path / "run", lake=tmp_path / "lake", packing=FramePacking((1, 3, 4), bits=2))
