"""What the kit promises of each game that is built with it, and that a third one can be."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from pyboy import PyBoy

from tests.games.console import GAMES, ROM_SOURCES

SDCC_VERSION = "4.2.0"
NAMES = sorted(path.parent.name for path in ROM_SOURCES.glob("*/Makefile"))
every_game = pytest.mark.parametrize("name", NAMES)


def rom_of(name: str) -> bytes:
    return (GAMES / name / f"{name}.gb").read_bytes()


def files_below(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix != ".pyc"]


def build(source: Path, out: Path) -> None:
    """Runs the game's Makefile, or skips the test where the compiler is not the kit's."""
    if not (shutil.which("sdcc") and shutil.which("make")):
        pytest.skip("sdcc or make is not installed")
    version = subprocess.run(
        ["sdcc", "--version"], capture_output=True, encoding="utf-8", check=True
    )
    if SDCC_VERSION not in version.stdout:
        pytest.skip(f"ROMs are built with sdcc {SDCC_VERSION}; this is {version.stdout[:80]!r}")
    command = ["make", "-C", str(source), f"OUT={out}", f"PYTHON={sys.executable}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


def test_the_bundled_games_are_built_with_the_kit() -> None:
    assert sorted(path.parent.name for path in GAMES.glob("*/game.yaml")) == NAMES
    assert {"beacon", "duel"} <= set(NAMES)


@every_game
def test_rom_is_the_one_that_the_game_file_names(name: str) -> None:
    game = yaml.safe_load((GAMES / name / "game.yaml").read_text(encoding="utf-8"))
    assert hashlib.sha256(rom_of(name)).hexdigest() == game["rom"]["sha256"]


@every_game
def test_header_has_a_title_both_checksums_and_no_logo(name: str) -> None:
    rom = rom_of(name)
    assert len(rom) == 32 * 1024
    assert rom[0x147:0x14A] == bytes(3)
    assert rom[0x134:0x143] == name.upper().encode().ljust(15, b"\0")
    game = yaml.safe_load((GAMES / name / "game.yaml").read_text(encoding="utf-8"))
    assert rom[0x143] == {"dmg": 0, "cgb": 0xC0}[game["hardware"]]
    check = 0
    for byte in rom[0x134:0x14D]:
        check = (check - byte - 1) % 256
    assert rom[0x14D] == check
    assert int.from_bytes(rom[0x14E:0x150], "big") == (sum(rom) - rom[0x14E] - rom[0x14F]) % 65536
    assert not any(rom[0x104:0x134])


@pytest.mark.slow
@every_game
def test_source_gives_the_rom_and_the_symbols_bit_for_bit(name: str, tmp_path: Path) -> None:
    before = files_below(ROM_SOURCES)
    build(ROM_SOURCES / name, tmp_path)
    for file in (f"{name}.gb", f"{name}.sym"):
        assert (tmp_path / file).read_bytes() == (GAMES / name / file).read_bytes(), file
    assert files_below(ROM_SOURCES) == before


def test_the_example_of_the_kits_readme_is_a_game(tmp_path: Path) -> None:
    text = (ROM_SOURCES / "kit" / "README.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`(\S+)`:\n\n```\w+\n(.*?)```", text, flags=re.DOTALL))
    assert set(files) == {"Makefile", "draw_art.py", "main.c"}
    shutil.copytree(ROM_SOURCES / "kit", tmp_path / "kit")
    source = tmp_path / "dot" / "src"
    source.mkdir(parents=True)
    for name, content in files.items():
        (source / name).write_text(content, encoding="utf-8")
    build(source, tmp_path)
    assert "_dot_x" in (tmp_path / "dot.sym").read_text(encoding="utf-8")
    rom = io.BytesIO((tmp_path / "dot.gb").read_bytes())
    pyboy = PyBoy(rom, window="null", sound_emulated=False, cgb=False, log_level="ERROR")
    pyboy.tick(100, True, False)
    places = []
    for _ in range(2):
        places.append(np.argwhere(pyboy.screen.ndarray[:, :, 0] == 0))
        pyboy.button_press("right")
        pyboy.tick(20, True, False)
    pyboy.stop(save=False)
    assert [len(place) for place in places] == [64, 64]
    np.testing.assert_array_equal(places[0][0], [72, 80])
    moved = places[1] - places[0]
    assert (moved[:, 0] == 0).all()
    assert set(moved[:, 1]) <= {18, 19, 20}
