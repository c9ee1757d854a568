import hashlib
import os
from pathlib import Path

import pytest

from game_rl.errors import RomError, UsageError
from game_rl.games.definition import load_game
from game_rl.games.starter import KnownGame, write_starter
from tests import file_names
from tests.emulator.roms import make_rom


def rom_file(folder: Path, name: str = "my game.gb", **header: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(make_rom(**header))  # type: ignore[arg-type]
    return path


def test_a_starter_is_a_valid_game_with_the_roms_facts(tmp_path: Path) -> None:
    rom = rom_file(tmp_path / "roms")
    path = write_starter(rom, tmp_path / "games" / "mine")
    game = load_game(str(path))
    assert path == tmp_path / "games" / "mine" / "game.yaml"
    assert game.definition.title == "Testrom"
    assert game.definition.rom.sha256 == hashlib.sha256(rom.read_bytes()).hexdigest()
    assert game.rom.path.resolve() == rom.resolve()
    assert game.definition.hardware == "dmg"


@pytest.mark.parametrize(("flag", "hardware"), [(0xC0, "cgb"), (0x80, "cgb"), (0, "dmg")])
def test_the_hardware_is_the_best_that_the_cartridge_supports(
    tmp_path: Path, flag: int, hardware: str
) -> None:
    path = write_starter(rom_file(tmp_path, colour_flag=flag), tmp_path / "game")
    assert load_game(str(path)).definition.hardware == hardware


def test_a_symbol_file_beside_the_rom_is_used(tmp_path: Path) -> None:
    rom = rom_file(tmp_path)
    rom.with_suffix(".sym").write_text("00:C000 wScore\n", encoding="utf-8")
    path = write_starter(rom, tmp_path / "game")
    assert load_game(str(path)).definition.symbols == Path("../my game.sym")


def test_what_pads_the_title_is_left_out(tmp_path: Path) -> None:
    rom = rom_file(tmp_path)
    rom.write_bytes(make_rom(title=b"2048-gb    Xxxx"))
    assert load_game(str(write_starter(rom, tmp_path / "g"))).definition.title == "2048-Gb"


def test_a_rom_that_is_not_there_is_looked_for_in_each_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RomError) as caught:
        write_starter(Path("roms/pokemon.gb"), tmp_path)
    assert str(caught.value) == (
        f"there is no ROM at {Path('roms/pokemon.gb')}; put the file there or correct the path "
        f"(no .gb or .gbc file in roms{os.sep})"
    )


def test_what_is_known_stands_in_place_of_what_a_starter_says(tmp_path: Path) -> None:
    known = KnownGame(
        source="a list\nof mine",
        sections={
            "variables": "# from my list\nvariables:\n  coins: {address: 0xC123}\n",
            "rewards": "rewards:\n  coins: {variable: coins, on: increase}\n",
        },
        title="Another Title",
    )
    path = write_starter(rom_file(tmp_path), tmp_path / "g", known)
    text = path.read_text(encoding="utf-8")
    definition = load_game(str(path)).definition
    assert definition.title == "Another Title"
    assert list(definition.variables) == list(definition.rewards) == ["coins"]
    assert list(definition.start_states) == ["beginning"]
    assert "# from my list\nvariables:" in text
    assert "# What is known of this game is from a list\\U0000000Aof mine.\n" in text
    assert "GUESS" not in text


@pytest.mark.parametrize("title", [b'A "B" \\ {C}', b"YES", b"", b"# X: Y", b"{title}"])
def test_any_title_is_quoted_right(tmp_path: Path, title: bytes) -> None:
    rom = rom_file(tmp_path)
    rom.write_bytes(make_rom(title=title))
    expected = title.decode().title() or "my game"
    assert load_game(str(write_starter(rom, tmp_path / "g"))).definition.title == expected


@pytest.mark.parametrize("name", ["a\nb", "a\tb", 'a"b', "a\\b", "#", "\x85", "\u2028", "🕹"])
def test_any_file_name_is_written_right(tmp_path: Path, name: str) -> None:
    if not file_names.is_possible(name):
        pytest.skip("the names of files are in ASCII here")
    folder = tmp_path / name
    folder.mkdir()
    rom = folder / f"{name}.gb"
    rom.write_bytes(make_rom(title=b""))
    game = load_game(str(write_starter(rom, folder)))
    assert game.rom.path.samefile(rom)
    assert game.definition.title == name


def test_a_name_that_is_no_text_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    rom = tmp_path / "\udcff.gb"
    rom.write_bytes(make_rom())
    with pytest.raises(UsageError, match="not UTF-8"):
        write_starter(rom, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_game_file_is_never_written_over(tmp_path: Path) -> None:
    rom = rom_file(tmp_path)
    path = write_starter(rom, tmp_path)
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match="exists already"):
        write_starter(rom, tmp_path)
    assert path.read_text(encoding="utf-8") == "precious"


def test_a_folder_that_cannot_be_made_and_a_wrong_rom_are_refused(tmp_path: Path) -> None:
    rom = rom_file(tmp_path)
    with pytest.raises(UsageError, match="cannot be written"):
        write_starter(rom, rom / "game")
    with pytest.raises(RomError):
        write_starter(tmp_path / "none.gb", tmp_path / "other")
    assert not (tmp_path / "other").exists()
