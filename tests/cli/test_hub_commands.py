"""Mistakes at game-rl push and pull, answered without a network."""

import sys
from pathlib import Path

import pytest

from game_rl.cli.main import main


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("push runs/x ada/ppo-duel", "write hf:ada/ppo-duel"),
        ("push runs/x hf:ada/ppo-duel@v1", "a push goes to the branch main"),
        ("push runs/x hf:ada/ppo-duel", "no terminal to answer in; add --yes"),
        ("push runs/x hf:ada/ppo-duel --json", "no terminal to answer in; add --yes"),
        ("push runs/x hf:ada/ppo-duel --dry-run", "runs/x is not a run directory"),
        ("push runs/x hf:ada/ppo-duel --dry-run --output .", "exists already"),
        ("pull ppo-duel", "write hf:USER/NAME"),
        ("pull hf:ada/ppo-duel --folder .", "name another folder with --folder"),
    ],
)
def test_a_mistake_is_answered_with_the_way_out(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in error(capsys, *words.split())


@pytest.mark.parametrize("words", ["push runs/x hf:a/b --yes", "pull hf:a/b"])
def test_without_the_extra_the_command_names_it(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'game_rl[hub]'" in error(capsys, *words.split())
