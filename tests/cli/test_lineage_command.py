"""`game-rl lineage`."""

import json
import shutil

import pytest

from game_rl.cli.main import main
from game_rl.config.strict_model import with_changed
from game_rl.files.run_dir import RunDir
from game_rl.training.train import train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import fork_of, quiet, whole_run


def test_lineage_adds_up_what_a_fork_of_a_fork_comes_from(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = whole_run(make_config, "pqn")
    train(fork_of(parent, 64, "first"), command(quiet(), until=128))
    first = RunDir(parent.root.with_name("first"))
    config = fork_of(first, 128, "second", fork__counters="new", env__frame_skip=4)
    train(with_changed(config, {("total_timesteps",): 64}), command(quiet()))
    shutil.rmtree(parent.root)  # what is known of it stays
    assert main(["lineage", str(config.run_dir), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert account["total_timesteps"] == 64 + 64 + 64
    assert account["total_frames"] == 64 * 4 + (64 + 64) * 8
    assert account["run"]["sources"][0]["sources"][0]["timesteps"] == 64
    assert main(["lineage", str(config.run_dir)]) == 0
    printed = capsys.readouterr().out
    assert "fork of" in printed
    assert "1,280" in printed
