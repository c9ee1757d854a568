"""A fork's Lake: rows of its own, and those of its parent that its replay needs."""

import shutil
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.lake.lake import Lake
from game_rl.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import fork_of, learned, quiet, whole_run
from tests.training.test_run_lake import timesteps


@pytest.mark.parametrize("kind", ["dqn-lake", "pqn"])
def test_a_forks_lake_has_rows_of_its_own_under_its_own_name(
    kind: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    whole = timesteps(parent.lake)
    config = fork_of(parent, 128, "fork")
    train(config, command(quiet()))
    fork = RunDir(config.run_dir)
    ids = [run.identity().id for run in (parent, fork)]
    own = timesteps(fork.lake, ids[1])
    assert {env: len(rows) for env, rows in own.items()} == {0: 32, 1: 32}
    values = {env: [row[1:] for row in rows] for env, rows in own.items()}
    assert values == {env: [row[1:] for row in rows[64:]] for env, rows in whole.items()}
    if kind == "dqn-lake":  # whose replay needs its parent's rows
        assert {env: [row[0] for row in rows] for env, rows in own.items()} == {
            env: list(range(64, 96)) for env in (0, 1)
        }
        assert timesteps(fork.lake, ids[0]) == {e: rows[:64] for e, rows in whole.items()}
        shared = [p for p in fork.lake.glob("*.segment") if p.stat().st_nlink > 1]
        assert shared
        assert all(path.name.startswith(ids[0]) for path in shared)
        origins = [
            (run.lake / "origins" / f"{ids[0]}.json").read_text(encoding="utf-8")
            for run in (parent, fork)
        ]
        assert origins[0] == origins[1]
    else:
        assert Lake.open(fork.lake).view().streams == [ids[1]]


def test_a_fork_lets_go_of_its_parents_rows_when_its_replay_has_none_of_them(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "dqn-lake")
    config = fork_of(parent, 64, "fork", total_timesteps=320, checkpoints__keep_last=1)
    train(config, command(quiet()))
    lake = Checkpoint(RunDir(config.run_dir).checkpoint(320)).lake()
    assert lake is not None
    assert lake.ancestors == ()


@pytest.mark.slow
def test_forks_of_one_shared_lake_write_streams_of_their_own(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    """And the parent goes on beside its fork, whose replay still has the parent's rows."""
    shared = tmp_path / "shared"
    parent = whole_run(make_config, "dqn-lake", f"lake.path={shared}", "total_timesteps=256")
    expected = learned(parent, 256)
    shutil.rmtree(parent.checkpoint(256))
    config = fork_of(parent, 64, "fork")
    train(config, command(quiet(), until=128))
    resume(parent.root, command(quiet()))
    resume(config.run_dir, command(quiet()))
    fork = RunDir(config.run_dir)
    assert learned(parent, 256) == learned(fork, 256) == expected
    streams = {run.identity().id for run in (parent, fork)}
    assert set(Lake.open(shared).view().streams) == streams
