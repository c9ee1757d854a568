"""`game-rl train` as it is seen from outside: what is printed, and to whom."""

import json
import os
import sys
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.cli.main import main
from game_rl.event_log import read_events
from game_rl.run_dir import RunDir
from tests.tiny_run import TINY


def tiny_config(folder: Path) -> Path:
    path = folder / "run.yaml"
    path.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return path


def test_a_reader_that_leaves_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="ascii") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        os.close(reader)  # as `head` does
        assert main(["train", "--config", str(tiny_config(tmp_path))]) == 0
    errors = capsys.readouterr().err
    assert errors.count("the output can no longer be written (Broken pipe); the training") == 1
    newest, _ = newest_valid_checkpoint(RunDir(tmp_path / "run"))
    assert newest.state.num_timesteps == 192
    assert read_events(RunDir(tmp_path / "run"))[-1].event == "ended"


def test_a_log_of_json_is_the_account_of_the_run_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--config", str(tiny_config(tmp_path)), "--log", "json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run_dir = RunDir(tmp_path / "run")
    assert printed == [
        json.loads(line) for line in run_dir.events.read_text(encoding="utf-8").splitlines()
    ]
    assert (printed[0]["event"], printed[-1]["event"]) == ("begun", "ended")
    assert printed[0]["run"] == run_dir.identity().id


def test_until_is_said_with_the_way_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny_config(tmp_path)
    assert main(["train", "--config", str(config), "--until", "50"]) == 0
    assert (
        "trained up to timestep 64 (512 frames) and saved; continue with game-rl train --resume"
        in capsys.readouterr().out
    )
    assert not (tmp_path / "run" / "videos").exists()
    assert main(["train", "--resume", str(tmp_path / "run"), "--until", "192"]) == 0
    assert "best policy, timestep" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("game-rl 0.")


def test_a_seed_chooses_the_episodes_of_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(tmp_path)
    assert main(["train", "--config", str(config), "--until", "100"]) == 0
    capsys.readouterr()

    def evaluation(*more: str) -> str:
        words = ["evaluate", str(tmp_path / "run"), "--checkpoint", "latest", "--episodes", "6"]
        assert main([*words, "--json", *more]) == 0
        return capsys.readouterr().out

    found = [evaluation("--seed", seed) for seed in ("7", "7", "8")]
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert evaluation() == evaluation()


def test_a_folder_in_brackets_is_printed_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")  # tables shorten what is longer
    root = tmp_path / "[red]" / "[seed 1]"
    config, clip = tiny_config(tmp_path), ("--set", "recording.episodes=1")
    assert main(["train", "--config", str(config), "--set", f"run_dir={root}", *clip]) == 0
    told = capsys.readouterr().out
    for place in (f"run          {root}", f"--logdir '{root}'", f"watch      '{root}/videos"):
        assert place in told
    assert main(["evaluate", str(root), "--episodes", "1"]) == 0
    assert f"{root}, timestep" in capsys.readouterr().out.replace("\n", "")
    longer = ["--set", "total_timesteps=1_000", "--until", "200"]
    assert main(["train", "--resume", str(root), *longer]) == 0
    assert f"--resume '{root}'" in capsys.readouterr().out
    (root / "checkpoints" / "000000000192" / "policy.safetensors").unlink()
    assert main(["checkpoints", str(root)]) == 1
    assert f"{root}/checkpoints" in capsys.readouterr().out
