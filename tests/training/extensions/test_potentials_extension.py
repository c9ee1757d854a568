"""Trainings with a potential: the run keeps what it began with, and nothing else counts."""

import shutil
from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.explore.potentials import PotentialsFeature
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.training.admission import check_new_run
from game_rl.training.forking import find_source, forked_config, plan_fork
from game_rl.training.train import resume, train
from tests.explore.made_archives import write_way_to_the_right
from tests.tiny_run import TINY_GAME, command
from tests.training.test_resuming import assert_same_run, console, write_config


def explored(folder: Path, *, goal: int = 60) -> Path:
    return write_way_to_the_right(folder, load_game(str(TINY_GAME)), goal=goal)


def config_of(tmp_path: Path, name: str, *changes: str) -> RunConfig:
    reward = f"{{progress: {{potential: {tmp_path / 'explored'}, weight: 0.05}}}}"
    return load_config(write_config(tmp_path, name, f"env.rewards={reward}", *changes))


@pytest.mark.slow
def test_a_resumed_run_is_the_same_though_the_exploration_went_on_or_is_gone(
    tmp_path: Path,
) -> None:
    explored(tmp_path / "explored")
    whole = config_of(tmp_path, "whole")
    train(whole, command(console()))
    parts = [config_of(tmp_path, name) for name in ("part", "moved")]
    for part in parts:
        train(part, command(console(), until=96))
    explored(tmp_path / "explored", goal=1)
    resume(parts[0].run_dir, command(console()))
    assert_same_run(parts[0].run_dir, whole.run_dir)
    shutil.rmtree(tmp_path / "explored")
    run_dir = RunDir(parts[1].run_dir)
    saved = run_dir.potentials.read_bytes()
    run_dir.potentials.unlink()  # as in a run that was copied without it
    resume(run_dir.root, command(console()))
    assert_same_run(run_dir.root, whole.run_dir)
    assert run_dir.potentials.read_bytes() == saved
    source = find_source(whole.run_dir, 96)
    plan_fork(forked_config(source, tmp_path / "fork", {}))  # it takes over the parent's
    anew = {"counters": "new"}
    with pytest.raises(UsageError, match=r"^reward term progress: there is no folder"):
        plan_fork(forked_config(source, tmp_path / "fork", {}, fork=anew))
    run_dir.potentials.unlink()
    checkpoint = run_dir.checkpoints_newest_first()[0]
    PotentialsFeature().fetched(run_dir, checkpoint, ())
    assert evaluate_run(open_trained_run(run_dir.root, "best"), episodes=2, seed=0).episodes == 2


@pytest.mark.slow
def test_another_exploration_gives_another_run(tmp_path: Path) -> None:
    explored(tmp_path / "explored")
    one = config_of(tmp_path, "one")
    train(one, command(console()))
    explored(tmp_path / "explored", goal=1)
    other = config_of(tmp_path, "other")
    other.run_dir.mkdir()  # where a run was killed before its first checkpoint
    shutil.copy(RunDir(one.run_dir).potentials, RunDir(other.run_dir).potentials)
    train(other, command(console()))
    with pytest.raises(AssertionError):
        assert_same_run(one.run_dir, other.run_dir)


def test_a_run_does_not_begin_without_its_exploration(tmp_path: Path) -> None:
    config = config_of(tmp_path, "run")
    with pytest.raises(UsageError, match=r"^reward term progress: there is no folder .*explored"):
        check_new_run(config, force=False, show=lambda _: None)
    assert not config.run_dir.exists()
