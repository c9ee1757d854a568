"""A whole run of DQN and of PQN on the bundled game, as small as they can be."""

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command, train_once

SMALL = {
    "dqn": "algorithm={name: dqn, replay: {capacity: 150}, learning_starts: 40, n_step: 2}",
    "pqn": "algorithm={name: pqn, n_steps: 16, batch_size: 16}",
}


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_run_trains_evaluates_records_and_goes_on(
    name: str, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config(name, SMALL[name], "total_timesteps=128", "recording.episodes=1")
    result = train(config, command(quiet()))
    run_dir = RunDir(config.run_dir)
    assert [int(path.name) for path in run_dir.checkpoints_newest_first()] == [128, 64]
    rows = run_dir.evaluations.read_text(encoding="utf-8").splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == [64, 128]
    assert result.evaluation.episodes == 2
    assert result.video is not None
    assert result.video.is_file()
    longer = run_dir.config.read_text(encoding="utf-8").replace(
        "total_timesteps: 128", "total_timesteps: 192"
    )
    run_dir.config.write_text(longer, encoding="utf-8")
    resume(config.run_dir, command(quiet()))
    assert int(run_dir.checkpoints_newest_first()[0].name) == 192
    before, after = (Checkpoint(run_dir.checkpoint(n)).policy() for n in (128, 192))
    assert any(not torch.equal(before[key], after[key]) for key in before)
    assert main(["evaluate", str(config.run_dir), "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_resumed_run_is_the_same_run_bit_for_bit(name: str, make_config: MakeConfig) -> None:
    overrides = [SMALL[name], "recording.episodes=0"]
    if name == "dqn":
        overrides.append("checkpoints.save_replay_buffer=true")
    config = make_config(name, *overrides)
    train_once(config)
    newest = RunDir(config.run_dir).checkpoint(192)
    straight = Checkpoint(newest).policy()
    shutil.rmtree(newest)
    console = quiet()
    resume(config.run_dir, command(console))
    assert "resuming from timestep 128" in console.file.getvalue()  # type: ignore[attr-defined]
    again = Checkpoint(newest).policy()
    assert straight.keys() == again.keys()
    assert all(torch.equal(straight[key], again[key]) for key in straight)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keeps", "is_same"),
    [([], False), (["checkpoints.save_replay_buffer=true"], True), (["lake={}"], True)],
    ids=["lost", "saved", "lake"],
)
def test_a_dqn_says_that_it_is_not_the_same_run_where_its_replay_is_lost(
    keeps: list[str], is_same: bool, make_config: MakeConfig
) -> None:
    config = make_config("dqn", SMALL["dqn"], "recording.episodes=0", *keeps)
    train_once(config)
    newest = RunDir(config.run_dir).checkpoint(192)
    straight = Checkpoint(newest).policy()
    shutil.rmtree(newest)
    console = quiet()
    resume(config.run_dir, command(console))
    again = Checkpoint(newest).policy()
    assert all(torch.equal(straight[key], again[key]) for key in straight) == is_same
    printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert ("not bit for bit the same as an uninterrupted run: the replay" in printed) != is_same


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_preflight_measures_how_fast_it_trains(
    name: str, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_config(name)
    arguments = ["preflight", "--config", str(tmp_path / f"{name}.yaml"), "--probe", "--json"]
    assert main([*arguments, "--set", SMALL[name]]) == 0
    seconds = json.loads(capsys.readouterr().out)["speed"]["seconds"]
    assert all(seconds[part] > 0 for part in ("inference", "emulation", "update", "evaluation"))


def test_tune_leaves_dqn_alone_and_says_why(
    make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_config("dqn")
    arguments = ["tune", "--config", str(tmp_path / "dqn.yaml"), "--set", SMALL["dqn"]]
    assert main(arguments) == 2
    assert "another number of envs changes the training" in capsys.readouterr().err
