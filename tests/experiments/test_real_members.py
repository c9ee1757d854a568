"""A population of real members, beside runs that nobody selected or broke off."""

import json
import shutil
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.files.run_dir import RunDir
from game_rl.system.processes import CPUS_VARIABLE
from game_rl.training.train import train
from tests.faults.population_faults import write_population
from tests.tiny_run import command
from tests.training.forks import quiet


def weights_of(run_dir: RunDir, timesteps: int) -> str:
    manifest = json.loads(
        (run_dir.checkpoint(timesteps) / "manifest.json").read_text(encoding="utf-8")
    )
    return str(manifest["files"]["policy.safetensors"]["sha256"])


@pytest.mark.soak
def test_members_are_the_runs_that_they_would_be_alone_and_the_champion_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ExperimentDir(tmp_path / "population")
    file = write_population(tmp_path, folder.root)
    file.write_text(
        file.read_text(encoding="utf-8") + "train_on: {timesteps: 64}\n", encoding="utf-8"
    )
    assert main(["train", "--config", str(file)]) == 0
    last = read_record(folder.generation(3).record, GenerationRecord)
    assert last is not None

    monkeypatch.setenv(CPUS_VARIABLE, "1")
    config = load_config(folder.member("00").config, is_saved=True)
    alone = config.model_copy(update={"run_dir": tmp_path / "alone"})
    train(alone, command(quiet(), until=192))
    assert last.members[0].weights_sha256 == weights_of(RunDir(alone.run_dir), 192)

    assert last.learner is not None
    assert last.learner.parent_folder is not None
    best = RunDir(tmp_path / "best")
    shutil.copytree(folder.member(last.learner.parent_folder).root, best.root)
    assert main(["train", "--resume", str(best.root)]) == 0  # to the end that it never came to
    assert last.members[3].weights_sha256 == weights_of(best, 256)

    for arguments in (
        ["evaluate", str(folder.root), "--episodes", "2"],
        ["record", str(folder.root), "--episodes", "1", "--output", str(tmp_path / "x.gif")],
        ["export", str(folder.root), "--output", str(tmp_path / "x.zip")],
        ["checkpoints", str(folder.root)],
    ):
        assert main(arguments) == 0, capsys.readouterr().err
    assert (tmp_path / "x.gif").exists()
