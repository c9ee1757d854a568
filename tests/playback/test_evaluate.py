"""`game-rl evaluate` from start states that the user names."""

import json
from pathlib import Path

import pytest

from game_rl.callbacks.stop import StopRequest
from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.playback.evaluate import evaluate_run
from game_rl.playback.policy import open_trained_run
from game_rl.training.train import Command, train
from tests.tiny_run import TINY


@pytest.fixture(scope="module")
def run_of_level_1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"))
    changes = ["env.start_states=[level_1]", "recording.episodes=0"]
    train(load_config(config, changes), Command(stop=StopRequest()))
    return folder / "run"


def test_each_named_start_state_is_played_whether_trained_on_or_not(
    run_of_level_1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_trained_run(run_of_level_1, "latest")
    command = ["evaluate", str(run_of_level_1), "--checkpoint", "latest", "--episodes", "3"]
    assert main([*command, "--json"]) == 0
    trained_on = json.loads(capsys.readouterr().out)
    assert main([*command, "--json", "--start-states", "level_1", "level_3"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["level_1", "level_3"]
    assert report["level_1"] == trained_on
    assert report["level_3"] == evaluate_run(run, episodes=3, start_state="level_3").to_json()
    assert report["level_3"] != report["level_1"]


def test_an_unknown_start_state_is_named_before_anything_is_played(
    run_of_level_1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(run_of_level_1), "--start-states", "level_1", "level_9"]
    assert main([*command, "--checkpoint", "latest"]) == 2
    error = capsys.readouterr().err
    assert "no start state of duel level_9" in error
