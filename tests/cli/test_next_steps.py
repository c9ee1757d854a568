import shlex
import sys
from pathlib import Path

import pytest

from game_rl.cli.train_command import next_steps


def test_commands_work_for_a_path_with_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    run = Path("runs/my run")
    steps = dict(next_steps(run, run / "videos" / "best.gif"))
    assert shlex.split(steps["watch"]) == ["runs/my run/videos/best.gif"]
    assert shlex.split(steps["curves"]) == ["tensorboard", "--logdir", "runs/my run"]
    assert shlex.split(steps["evaluate"])[:3] == ["game-rl", "evaluate", "runs/my run"]
    assert shlex.split(steps["record"])[:3] == ["game-rl", "record", "runs/my run"]
    assert "watch" not in dict(next_steps(run, None))


def test_a_program_of_an_environment_that_is_not_active_has_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "tensorboard").touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.chdir(tmp_path)
    steps = dict(next_steps(Path("run"), None))
    assert steps["curves"] == ".venv/bin/tensorboard --logdir run"
    assert steps["evaluate"].startswith("game-rl ")  # not there either: as the docs name it
