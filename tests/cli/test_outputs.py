"""What a command writes costs nobody a file: outputs are checked before the command begins."""

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.cli.parser import make_parser
from tests.tiny_run import TINY_GAME

SOURCE = "title: Mine  # an evening's work\n"
READ = {
    "--config",
    "--folder",
    "--moments",
    "--recorded",
    "--resume",
    "--storage",
    "--study",
    "--symbol-file",
}
"""Options with paths that are read, or folders in which only new files are made."""


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def test_every_option_that_names_a_file_is_read_or_checked() -> None:
    for parser in _parsers(make_parser()[0]):
        checked = {output.option for output in parser.get_default("outputs") or ()}
        checked |= {option for option, _ in parser.get_default("output_folders") or ()}
        for action in parser._actions:
            is_path = action.type is Path and action.option_strings
            if is_path:
                assert {*action.option_strings} & (checked | READ), (parser.prog, action.dest)


@pytest.mark.parametrize(
    "command",
    [
        "check-game duel --sheet FILE.png",
        "check-game duel --parts-sheet FILE.png",
        "check-game duel --trace FILE.csv",
        "record run --output FILE.gif",
        "record run --output FILE.mp4",
        "plot run --output FILE.png",
        "plot run --output FILE.svg",
        "report run --output FILE.html",
        "places run --output FILE.png",
        "export run --output FILE.zip",
        "replay export lake --output FILE.pkl",
        "replay export lake --output FILE",
    ],
)
def test_an_existing_file_of_another_kind_stays(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.replace("FILE", str(tmp_path / "mine")).split()
    file = Path(words[-1])
    file.write_text(SOURCE, encoding="utf-8")
    assert main(words) == 2
    assert f"{file} exists and is not" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == SOURCE


@pytest.mark.parametrize("option", ["--sheet", "--parts-sheet", "--trace"])
@pytest.mark.parametrize("way", ["itself", "link", "second name"])
def test_a_game_file_is_not_overwritten_by_its_own_check(
    option: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TINY_GAME.parent, tmp_path / "game")
    game = tmp_path / "game" / "game.yaml"
    output = {"itself": game, "link": tmp_path / "a.png", "second name": tmp_path / "b.csv"}[way]
    if way == "link":
        output.symlink_to(game)
    elif way == "second name":
        os.link(game, output)
    content = game.read_bytes()
    assert main(["check-game", str(game), option, str(output)]) == 2
    assert str(output) in capsys.readouterr().err
    assert game.read_bytes() == content


def test_a_file_that_the_command_reads_is_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "episode.csv"
    file.write_text("episode,start_state,timestep,action\n", encoding="utf-8")
    assert main(["check-game", "duel", "--recorded", str(file), "--trace", str(file)]) == 2
    assert "is a file that the command reads" in capsys.readouterr().err


def test_a_report_does_not_replace_what_is_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text('{"mine": 1}', encoding="utf-8")
    assert main(["compare", "a", "b", "--output", str(tmp_path)]) == 2
    assert "report.json exists and is not a report" in capsys.readouterr().err


def test_two_outputs_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = str(tmp_path / "same.png")
    assert main(["check-game", "duel", "--sheet", same, "--parts-sheet", same]) == 2
    assert "--sheet and --parts-sheet both write" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["explore duel --output PLACE", "replay import buffer.pkl --output PLACE"]
)
def test_a_folder_to_write_to_is_no_file_and_in_none(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "game.gb"
    file.write_bytes(b"a ROM")
    for place in (file, file / "deep" / "er"):
        assert main(command.replace("PLACE", str(place)).split()) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"--output {place}: {file} is a file, not a folder; name another place" in told
    assert file.read_bytes() == b"a ROM"
