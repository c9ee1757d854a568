"""How a checkpoint acts: as the evaluation that made it the best, or as the config says."""

from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.errors import CheckpointError
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.run_dir import RunDir, remove_directory
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train
from tests.tiny_run import TINY, train_once


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Whose evaluations draw actions."""
    folder = tmp_path_factory.mktemp("drawn")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    changes = ["evaluation.deterministic=false", "recording.episodes=0"]
    return train_once(load_config(config, changes))


def set_way(run_dir: RunDir, way: str) -> None:
    before = run_dir.config.read_text(encoding="utf-8").splitlines()
    after = [f"  deterministic: {way}" if "deterministic:" in line else line for line in before]
    run_dir.config.write_text("\n".join(after) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("config", "best_draws", "others_draw"),
    [("true", True, False), ("false", True, True), ("auto", True, True)],
)
def test_the_best_acts_as_it_was_chosen_and_others_as_the_config_says(
    drawn_run: RunDir, config: str, best_draws: bool, others_draw: bool
) -> None:
    set_way(drawn_run, config)
    saved = [int(path.name) for path in drawn_run.checkpoints_newest_first()]
    best = Checkpoint(drawn_run.checkpoint(saved[0])).state.best
    assert best is not None
    assert not best.deterministic
    others = [str(timesteps) for timesteps in saved if timesteps != best.timesteps]
    for name in ("best", str(best.timesteps)):
        assert open_trained_run(drawn_run.root, name).deterministic is not best_draws
    for name in others:
        assert open_trained_run(drawn_run.root, name).deterministic is not others_draw


def test_a_best_that_draws_is_played_and_recorded_so_and_twice_the_same(
    drawn_run: RunDir, tmp_path: Path
) -> None:
    best = open_trained_run(drawn_run.root, "best")
    played = evaluate_run(best, episodes=2)
    assert not played.deterministic
    assert evaluate_run(best, episodes=2) == played
    clips = [
        record_run(best, episodes=1, output=tmp_path / f"{n}.gif").read_bytes() for n in range(2)
    ]
    assert clips[0] == clips[1]


def test_without_its_best_checkpoint_a_run_says_which_one_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    same = ("algorithm.learning_rate=1e-12", "evaluation.deterministic=true")
    changes = [*same, "total_timesteps=128", "recording.episodes=0"]
    train(load_config(file, changes), TrainCommand(stop=StopRequest(), evaluates_at_end=False))
    run_dir = RunDir(tmp_path / "run")
    assert open_trained_run(run_dir.root, "best").state.num_timesteps == 64
    remove_directory(run_dir.checkpoint(64))
    with pytest.raises(CheckpointError, match=r"checkpoints/0+64, is gone; use --checkpoint lat"):
        open_trained_run(run_dir.root, "best")
    assert open_trained_run(run_dir.root, "latest").state.num_timesteps == 128


def test_export_says_how_the_policy_plays(
    drawn_run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_way(drawn_run, "true")
    output = str(tmp_path / "best.zip")
    assert main(["export", str(drawn_run.root), "--output", output]) == 0
    assert "model.predict(observation, deterministic=False)" in capsys.readouterr().out
