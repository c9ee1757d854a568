"""A run that is taken back to an earlier checkpoint with `--at`."""

import json
import shutil

import pytest

from game_rl.cli.main import main
from game_rl.errors import CheckpointError
from game_rl.training.train import resume
from tests.tiny_run import MakeConfig, command
from tests.training.forks import everything, learned, quiet, whole_run


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn-lake"])
def test_a_run_taken_back_sets_later_checkpoints_aside_and_is_the_same_run(
    kind: str, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    run = whole_run(make_config, kind)
    expected, rows = learned(run, 192), run.evaluations.read_text(encoding="utf-8")
    later = {n: everything(run.checkpoint(n)) for n in (128, 192)}
    assert main(["train", "--resume", str(run.root), "--at", "64"]) == 0
    assert f"moved to {run.set_aside / '000000000192'}" in capsys.readouterr().out
    assert learned(run, 192) == expected
    assert run.evaluations.read_text(encoding="utf-8") == rows
    for name, files in later.items():
        assert everything(run.set_aside / f"{name:012d}") == files
    resumed = next(
        line
        for line in map(json.loads, run.events.read_text(encoding="utf-8").splitlines()[::-1])
        if line["event"] == "resumed"
    )
    assert resumed["timesteps"] == 64
    assert resumed["set_aside"] == [f"set_aside/{name:012d}" for name in (192, 128)]
    if kind == "dqn-lake":  # what was set aside can be put back: the Lake still has its rows
        shutil.rmtree(run.checkpoints)
        run.checkpoints.mkdir()
        (run.set_aside / "000000000128").rename(run.checkpoint(128))
        resume(run.root, command(quiet()))
        assert learned(run, 192) == expected


def test_a_checkpoint_that_is_not_kept_is_not_gone_back_to(make_config: MakeConfig) -> None:
    run = whole_run(make_config, "ppo")
    before = everything(run.checkpoints)
    with pytest.raises(CheckpointError, match="keeps no checkpoint of timestep 70"):
        resume(run.root, command(quiet()), at=70)
    assert everything(run.checkpoints) == before
