import hashlib
import os
from pathlib import Path

import pytest

from game_rl.emulator.rom_search import find_rom, found_roms, has_rom, rom_places
from game_rl.errors import RomError

WANTED = b"the one"
SHA1, SHA256 = hashlib.sha1(WANTED).hexdigest(), hashlib.sha256(WANTED).hexdigest()  # noqa: S324


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAME_RL_ROMS", raising=False)
    (tmp_path / "roms").mkdir()
    (tmp_path / "roms" / "other.gb").write_bytes(b"another")
    (tmp_path / "roms" / "folder.gb").mkdir()
    (tmp_path / "mine").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "hashes", [{"sha1": SHA1}, {"sha256": SHA256}, {"sha1": SHA1, "sha256": SHA256.upper()}]
)
def test_a_rom_is_found_by_each_hash_in_roms(here: Path, hashes: dict[str, str]) -> None:
    (here / "roms" / "a game.GBC").write_bytes(WANTED)
    assert find_rom(hashes) == Path("roms/a game.GBC")
    assert has_rom(hashes)


def test_the_folder_of_the_environment_comes_after_roms(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "mine" / "game.gb").write_bytes(WANTED)
    assert not has_rom({"sha1": SHA1})
    monkeypatch.setenv("GAME_RL_ROMS", str(here / "mine"))
    assert find_rom({"sha1": SHA1}) == here / "mine" / "game.gb"
    (here / "roms" / "game.gb").write_bytes(WANTED)
    assert find_rom({"sha1": SHA1}) == Path("roms/game.gb")


def test_the_roms_of_all_folders_are_listed_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(found_roms()) == [Path("roms/other.gb")]
    monkeypatch.setenv("GAME_RL_ROMS", str(here / "roms"))
    assert list(found_roms()) == [Path("roms/other.gb")]
    (here / "mine" / "game.gb").write_bytes(WANTED)
    monkeypatch.setenv("GAME_RL_ROMS", str(here / "mine"))
    assert list(found_roms()) == [Path("roms/other.gb"), here / "mine" / "game.gb"]


def test_every_hash_that_is_given_must_agree(here: Path) -> None:
    (here / "roms" / "game.gb").write_bytes(WANTED)
    with pytest.raises(RomError, match=r"no ROM with sha256 0+ and sha1"):
        find_rom({"sha256": "00" * 32, "sha1": SHA1})


def test_other_files_are_not_taken_for_roms(here: Path) -> None:
    (here / "roms" / "game.zip").write_bytes(WANTED)
    with (here / "roms" / "huge.gb").open("wb") as file:
        file.truncate(2**40)  # it would take an hour to read
    assert not has_rom({"sha1": SHA1})


def test_what_is_not_found_is_told_with_where_it_was_looked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RomError) as caught:
        find_rom({"sha1": SHA1})
    message = str(caught.value)
    expected = f"there is no ROM with sha1 {SHA1} in {here / 'roms'} (1 .gb or .gbc file), "
    assert expected in message
    assert "GAME_RL_ROMS (not set); put it into a folder roms" in message
    monkeypatch.setenv("GAME_RL_ROMS", "/nowhere")
    with pytest.raises(RomError, match=r"GAME_RL_ROMS=/nowhere \(no such folder\)"):
        find_rom({"sha1": SHA1})
    with pytest.raises(RomError, match=r"sha1 \w+ in GAME_RL_ROMS=/no.*; set GAME_RL_ROMS to"):
        find_rom({"sha1": SHA1}, in_current_folder=False)
    assert rom_places() == (str(here / "roms"), "/nowhere")


def test_a_file_that_changed_is_read_again(here: Path) -> None:
    path = here / "roms" / "game.gb"
    path.write_bytes(b"the two")
    assert not has_rom({"sha1": SHA1})
    path.write_bytes(WANTED)
    os.utime(path, ns=(1, 1))
    assert has_rom({"sha1": SHA1})
