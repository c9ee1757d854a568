"""`game-rl find`: what it finds and writes, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from PIL import Image

from game_rl.cli.main import main
from game_rl.games.definition import load_game
from tests.viewer.played_table import duel_table

SCRIPT = "wait 90, start 4, wait 12, start 4, wait 29"


def address_of(name: str) -> int:
    return next(v.numbers[0].address for v in load_game("duel").variables if v.name == name)


@pytest.mark.slow
def test_the_time_on_the_screen_is_found_written_and_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = load_game("duel")
    shutil.copy(game.folder / "duel.gb", tmp_path / "mine.gb")
    text = (game.folder / "game.yaml").read_text(encoding="utf-8")
    (tmp_path / "game.yaml").write_text(
        text.replace("path: duel.gb", "path: mine.gb"), encoding="utf-8"
    )
    shutil.copy(game.folder / "duel.sym", tmp_path / "duel.sym")
    words = ["find", str(tmp_path), "--number", "90", "--name", "shown_time", "--json"]
    assert main([*words, "--write"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["places"][0]["address"] == address_of("fight_timer")
    entry = yaml.safe_load((tmp_path / "game.yaml").read_text(encoding="utf-8"))["variables"][
        "shown_time"
    ]
    assert entry == {"address": address_of("fight_timer"), "type": "u8"}
    sheet = ["--sheet", str(tmp_path / "s.png"), "--parts-sheet", str(tmp_path / "p.png")]
    check = ["check-game", str(tmp_path / "game.yaml"), "--timesteps", "3", *sheet, "--json"]
    assert main(check) == 0
    assert json.loads(capsys.readouterr().out)["moments"]["facts"] == 8
    moments = (tmp_path / "moments.yaml").read_text(encoding="utf-8")
    (tmp_path / "moments.yaml").write_text(
        moments.replace("shown_time: 90", "shown_time: 91"), encoding="utf-8"
    )
    assert main(check) == 2
    assert "at moment 1" in json.loads(capsys.readouterr().out)["moments"]["disagreements"][0]


def test_a_rom_alone_is_searched_by_moments_and_asked_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rom = tmp_path / "mine.gb"
    shutil.copy(load_game("duel").folder / "duel.gb", rom)
    moments = tmp_path / "known.yaml"
    moments.write_text(
        "moments:\n"
        "- {known: {health: 64}}\n"
        "- {at: {then: [{hold: [right], frames: 120}], wait: 90}, known: {health: decreased}}\n",
        encoding="utf-8",
    )
    words = ["find", str(rom), "--script", SCRIPT, "--moments", str(moments), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    health = address_of("player_health")
    assert health in [place["address"] for place in found["places"][:3]]
    assert main([*words, "--why", f"0x{address_of('level'):04X}"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["against"] == "moment 1"


@pytest.mark.slow
def test_moments_that_a_person_marked_while_playing_are_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is known there is what memory says at the address of the game's symbol file."""
    right = address_of("player_health")
    with duel_table(tmp_path) as table:
        session = table.session
        before = session.emulator.read(right)
        table.mark(f"health: {before}")
        for held in ([], ["right"], [], ["a"], [], ["right"], []):
            for _ in range(90):
                session.play(held)  # type: ignore[arg-type]
            now = session.emulator.read(right)
            change = "unchanged" if now == before else "decreased" if now < before else "increased"
            table.mark(f"health: {change}")
            table.mark("")
            before = now
        table.save()
        moments = table.files.moments
        assert f"game-rl find duel --moments {moments}" in table.files.next_commands("duel")
    rom = tmp_path / "unknown.gb"
    shutil.copy(load_game("duel").folder / "duel.gb", rom)
    for game in ("duel", str(rom)):
        assert main(["find", game, "--moments", str(moments), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["places"][0]["address"] == right


def test_the_screen_is_drawn_with_its_rows_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "screen.png"
    assert main(["find", "duel", "--screen", str(path)]) == 0
    with Image.open(path) as picture:
        assert picture.size == (4 * 168, 4 * 152)


def test_symbols_are_searched_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["find", "duel", "--symbols", "hp", "--json"]) == 0
    names = [each["symbol"] for each in json.loads(capsys.readouterr().out)]
    assert names == ["_player_health", "_opponent_health"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["duel"], "say what to search for"),
        (["duel", "--number", "soon"], "does not say what the screen shows"),
        (["duel", "--number", "5"], "say where"),
        (["duel", "--number", "7654"], "does not show 7654"),
        (["duel", "--number", "90", "--write"], "stays as it is"),
        (["duel", "--number", "90", "--name", "a b"], "choose another"),
        (["duel", "--number", "90", "--start-state", "level_4"], "did you mean level_"),
        (["duel", "--number", "90", "--script", "start"], "is not a step"),
        (["duel", "--why", "0xC000", "--position"], "explains a search with --moments"),
        (["duel", "--moments", "nothing.yaml"], "no such file"),
        (["duel", "--number", "90", "--recorded", "nothing.json"], "no such file"),
        (["duel", "--position", "--recorded", "x.json"], "needs --number or --screen"),
        (["duel", "--number", "90", "--wait", "9", "--recorded", "x.json"], "leave out"),
        (["duel", "--symbols", "zeppelin"], "no symbol in RAM like"),
        (["nothing.gb", "--position"], "there is no ROM"),
    ],
)
def test_mistakes_are_answered_with_the_way_out(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["find", *words]) == 2
    assert says in capsys.readouterr().err
