"""Types of arguments that several commands share."""

from pathlib import Path

import pytest

from game_rl.cli.arguments import game_word
from game_rl.cli.parser import make_parser


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "duel"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "game.yaml").touch()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("mine", "mine/game.yaml"),
        ("mine/", "mine/game.yaml"),
        ("./duel", "duel/game.yaml"),
        ("duel", "duel"),  # the bundled game goes before a folder of its name
        ("empty", "empty"),
        ("mine/game.yaml", "mine/game.yaml"),
        ("roms/game.gb", "roms/game.gb"),
        ("x" * 5_000, "x" * 5_000),
    ],
)
def test_a_folder_with_a_game_file_needs_no_slash(word: str, meant: str) -> None:
    assert game_word(word) == meant


@pytest.mark.parametrize("command", ["check-game", "explore", "find", "play"])
def test_the_commands_of_a_game_take_its_folder(command: str) -> None:
    parser, _ = make_parser()
    arguments = parser.parse_args([command, "mine"])
    assert arguments.game == "mine/game.yaml"
