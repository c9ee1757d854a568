"""Tests of `game-rl new-game`; what it plays, `tests/game_check` tests."""

import json
import shutil
from pathlib import Path

import pytest

import game_rl
from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.games.definition import load_game
from game_rl.games.variables import MemoryVariable
from game_rl.preflight.preflight import preflight
from game_rl.system.machine import detect_machine
from tests.emulator.roms import make_rom

Output = pytest.CaptureFixture[str]

GAMES = Path(game_rl.__file__).parent / "games"
FILES = {"game.yaml", "run.yaml", "contact_sheet.png", "game.schema.json", "run.schema.json"}

# What of each bundled game is found from its ROM alone, by its own names for it.
_ORACLE: dict[str, dict[str, str]] = {
    "duel": {"x": "player_x", "over": "fight_result"},
    "beacon": {"x": "player_x", "y": "player_y", "over": "result"},
    "seasons": {"x": "runner_x", "over": "result"},
}


def call(*words: object) -> int:
    return main([str(word) for word in words])


def place_of(variable: object) -> tuple[int, str]:
    assert isinstance(variable, MemoryVariable)
    return variable.address, variable.type


def no_findings(run: Path) -> list[str]:
    """Return the warnings and errors of a forecast; hints of larger machines do not count."""
    config = load_config(run)
    report = preflight(config, load_game(config.game), detect_machine(config.run_dir))
    return [finding.message for finding in report.findings if finding.severity != "info"]


@pytest.mark.slow
@pytest.mark.parametrize("name", _ORACLE)
def test_a_rom_alone_becomes_a_game_and_a_run_that_trains(
    name: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ROM has another name and no symbol file; the bundled game's symbols are the oracle."""
    monkeypatch.chdir(tmp_path)
    rom = tmp_path / "unknown.gb"
    shutil.copyfile(GAMES / name / f"{name}.gb", rom)
    folder = tmp_path / "mine"
    assert call("new-game", rom, "--folder", folder) == 0
    told = capsys.readouterr().out
    assert "game-rl check-game" in told
    assert "game-rl train" in told
    assert {path.name for path in folder.iterdir()} == FILES
    known = {variable.name: variable for variable in load_game(name).variables}
    game = load_game(str(folder / "game.yaml"))
    found = {variable.name: variable for variable in game.variables}
    assert {each: place_of(found[each]) for each in _ORACLE[name]} == {
        each: place_of(known[true_name]) for each, true_name in _ORACLE[name].items()
    }
    assert no_findings(folder / "run.yaml") == []
    assert call("train", folder / "run.yaml", "--smoke", "--quiet") == 0
    schema = json.loads((folder / "game.schema.json").read_text(encoding="utf-8"))
    assert "variables" in schema["properties"]


def test_without_play_guesses_are_written_and_the_forecast_has_nothing_to_say(
    tmp_path: Path, capsys: Output
) -> None:
    rom = tmp_path / "mine.gb"
    rom.write_bytes(make_rom())
    assert call("new-game", rom, "--folder", tmp_path / "game", "--no-play") == 0
    assert "a guess teaches nothing" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "game").iterdir()} == FILES - {"contact_sheet.png"}
    assert no_findings(tmp_path / "game" / "run.yaml") == []


@pytest.mark.slow
def test_a_rom_that_shows_nothing_gets_guesses_its_screens_and_a_way_on(
    tmp_path: Path, capsys: Output
) -> None:
    rom = tmp_path / "mine.gb"
    rom.write_bytes(make_rom())
    assert call("new-game", rom, "--folder", tmp_path / "game", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (told,) = found["found"]
    assert told.startswith("no playable start was found: ")
    assert Path(found["sheet"]).is_file()
    assert "beginning" in load_game(found["file"]).definition.start_states


@pytest.mark.parametrize("name", ["game.yaml", "run.yaml", "contact_sheet.png"])
def test_no_file_of_the_user_is_written_over(name: str, tmp_path: Path, capsys: Output) -> None:
    rom = tmp_path / "mine.gb"
    rom.write_bytes(make_rom())
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert call("new-game", rom) == 2
    assert f"{name} exists already" in capsys.readouterr().err
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"mine.gb", name}
