"""A population of real members, beside what nobody selected."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.run_dir import RunDir
from game_rl.system.machine import CPUS_VARIABLE
from game_rl.training.train import train
from tests.faults.population_faults import write_population
from tests.tiny_run import command
from tests.training.forks import quiet


@pytest.mark.slow
def test_a_control_member_is_the_run_that_nobody_selected_and_the_champion_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ExperimentDir(tmp_path / "population")
    file = write_population(tmp_path, folder.root)
    assert main(["train", "--config", str(file)]) == 0
    last = read_record(folder.generation(3).record, GenerationRecord)
    assert last is not None

    monkeypatch.setenv(CPUS_VARIABLE, "1")
    config = load_config(folder.member("00").config, is_saved=True)
    alone = config.model_copy(update={"run_dir": tmp_path / "alone"})
    train(alone, command(quiet()))
    manifest = RunDir(alone.run_dir).checkpoint(192) / "manifest.json"
    weights = json.loads(manifest.read_text())["files"]["policy.safetensors"]["sha256"]
    assert last.members[0].weights_sha256 == weights

    for arguments in (
        ["evaluate", str(folder.root), "--episodes", "2"],
        ["record", str(folder.root), "--episodes", "1", "--output", str(tmp_path / "x.gif")],
        ["export", str(folder.root), "--output", str(tmp_path / "x.zip")],
        ["checkpoints", str(folder.root)],
    ):
        assert main(arguments) == 0, capsys.readouterr().err
    assert (tmp_path / "x.gif").exists()
