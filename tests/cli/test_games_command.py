"""`game-rl games`, and what `new-game` takes over of games that are known."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from game_rl.cli.main import main
from game_rl.interchange import known_games
from tests.emulator.roms import make_rom

Output = pytest.CaptureFixture[str]
DUEL = Path(__file__).parents[2] / "game_rl" / "games" / "duel" / "duel.gb"


@pytest.fixture(autouse=True)
def _folder_with_roms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAME_RL_ROMS", raising=False)
    Path("roms").mkdir()
    shutil.copy(DUEL, "roms/other_name.gb")
    Path("roms/tetris.gb").write_bytes(make_rom(title=b"TETRIS"))
    Path("roms/unknown.gb").write_bytes(make_rom(title=b"UNKNOWN"))
    Path("roms/broken.gb").write_bytes(b"short")


def facts(capsys: Output, *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_games_lists_bundled_games_examples_and_roms(capsys: Output) -> None:
    found = facts(capsys, "games")
    assert [game["name"] for game in found["bundled"]] == ["beacon", "courier", "duel", "seasons"]
    names = [Path(game["name"]).parent.name for game in found["examples"]]
    assert {"kirby", "tetris", "alleyway"} <= set(names)
    assert all(game["sha256"] or game["sha1"] for game in found["examples"])
    roms = {Path(rom["file"]).name: rom for rom in found["roms"]}
    assert roms["other_name.gb"]["games"] == ["duel"]
    assert roms["tetris.gb"]["sources"] == ["pyboy"]
    assert roms["unknown.gb"]["games"] == roms["unknown.gb"]["sources"] == []
    assert "the copy was cut short" in roms["broken.gb"]["problem"]


def test_a_game_file_of_ones_own_is_listed_and_knows_its_rom(capsys: Output) -> None:
    assert main(["new-game", "roms/unknown.gb", "--folder", "mine", "--no-play"]) == 0
    Path("wrong").mkdir()
    Path("wrong/game.yaml").write_text("title: 3", encoding="utf-8")
    capsys.readouterr()
    found = facts(capsys, "games")
    own = str(Path("mine/game.yaml"))
    assert [game["name"] for game in found["own"]] == [own]
    roms = {Path(rom["file"]).name: rom["games"] for rom in found["roms"]}
    assert roms["unknown.gb"] == [own]


def test_a_person_reads_a_line_for_each(capsys: Output) -> None:
    assert main(["games"]) == 0
    seen = " ".join(capsys.readouterr().out.split())
    for part in ("duel Duel", "other_name.gb DUEL duel", "tetris.gb TETRIS pyboy"):
        assert part in seen
    assert "unknown.gb UNKNOWN nobody" in seen
    assert "game-rl new-game ROM writes" in seen
    assert main(["games", "-q"]) == 0
    assert "game-rl new-game ROM writes" not in capsys.readouterr().out


def test_an_installed_package_has_no_examples(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_games, "_EXAMPLES", tmp_path / "none")
    shutil.rmtree("roms")
    assert facts(capsys, "games")["examples"] == []
    assert main(["games"]) == 0
    seen = capsys.readouterr().out
    assert "the repository of game_rl has more, in its folder examples" in seen
    assert "no ROM in" in seen


def test_new_game_says_what_it_took_over_and_what_not(capsys: Output, tmp_path: Path) -> None:
    folder = tmp_path / "Some-GameBoy"
    folder.mkdir()
    info = {"score": {"address": 0xC000, "type": ">d3"}, "far": {"address": 1, "type": "|u1"}}
    (folder / "data.json").write_text(json.dumps({"info": info}), encoding="utf-8")
    words = ("new-game", "roms/tetris.gb", "--no-play", "--folder")
    found = facts(capsys, *words, "a", "--from", f"retro:{folder}")
    assert found["from"] == "Some-GameBoy of stable-retro"
    assert any("variable far" in warning for warning in found["warnings"])
    assert main([*words, "b", "--from", f"retro:{folder}"]) == 0
    seen = " ".join(capsys.readouterr().out.split())
    assert "warning: variable far" in seen
    assert "it has what is known from Some-GameBoy of stable-retro" in seen


def test_new_game_takes_what_pyboy_knows_unless_it_must_not(capsys: Output) -> None:
    words = ("new-game", "roms/tetris.gb", "--no-play", "--folder")
    assert facts(capsys, *words, "a")["from"] == "PyBoy's wrapper of Tetris"
    assert facts(capsys, *words, "b", "--from", "nothing")["from"] is None
    assert main([*words, "c"]) == 0
    seen = capsys.readouterr()
    assert "examples/tetris, examples/tetris_flat" in seen.err
    assert "a guess teaches nothing" not in seen.out


def test_new_game_names_the_games_that_are_for_the_same_rom(capsys: Output) -> None:
    words = ("new-game", "roms/other_name.gb", "--no-play", "--folder")
    found = facts(capsys, *words, "a")
    assert found["games"] == ["duel"]
    assert main([*words, "b"]) == 0
    assert "a game file for this ROM exists already: duel" in capsys.readouterr().err
