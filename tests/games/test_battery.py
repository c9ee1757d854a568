"""Start states from a battery file, beside PyBoy's own way to load one."""

import io
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from pyboy import PyBoy

from game_rl.config.schema import EnvConfig
from game_rl.emulator.battery import battery_ram
from game_rl.emulator.rom import read_rom
from game_rl.envs.make_env import make_env
from game_rl.errors import GameFileError
from game_rl.games.definition import load_game
from game_rl.storage.background import game_files
from tests.emulator.roms import make_rom

# LD A,0A; LD (0000),A: RAM on. LD A,1; LD (4000),A: bank 1. Then copy 16 bytes to C010 and halt.
COPYING = bytes.fromhex("3E0AEA00003E01EA00402110C01100A006101A13220520FA76 18FE")
GAME = """\
title: Copying
rom: {path: game.gb}
start_states:
  loaded: {battery: game.sav, script: [{wait: 90}]}
  empty: {script: [{wait: 90}]}
actions: {idle: [], a: [a]}
variables: {first: {address: 0xC010}, saved: {address: 0xA000, bank: 3, type: u32, endian: big}}
rewards: {counted: {variable: first, on: change}}
"""
MBC5, MBC1, MBC2, MBC3_CLOCK, MBC3_ONLY_CLOCK = 0x1B, 0x03, 0x06, 0x10, 0x0F


def copying_rom(cartridge: int = MBC5, ram_size: int = 3) -> bytes:
    rom = bytearray(make_rom(cartridge=cartridge, ram_size=ram_size))
    rom[0x150 : 0x150 + len(COPYING)] = COPYING
    return bytes(rom)


def save(n_bytes: int = 4 * 8_192) -> bytes:
    return np.random.default_rng(5).integers(0, 256, n_bytes, np.uint8).tobytes()


def write(folder: Path, ram: bytes, rom: bytes | None = None) -> Path:
    (folder / "game.gb").write_bytes(copying_rom() if rom is None else rom)
    (folder / "game.sav").write_bytes(ram)
    (folder / "game.yaml").write_text(GAME, encoding="utf-8")
    return folder / "game.yaml"


def test_the_game_finds_at_power_on_what_the_battery_kept(tmp_path: Path) -> None:
    ram = save()
    pyboy = PyBoy(
        io.BytesIO(copying_rom()),
        ram_file=io.BytesIO(ram),
        window="null",
        sound_emulated=False,
        log_level=5,
    )
    pyboy.tick(90, False, False)
    copied = bytes(pyboy.memory[0xC010 + i] for i in range(16))
    pyboy.stop(save=False)
    assert copied == ram[0x2000:0x2010], "PyBoy itself shows bank 1 to the game"
    game = load_game(str(write(tmp_path, ram)))
    with closing(make_env(EnvConfig(max_idle_frames=0), game)) as env:
        env.reset(seed=0, options={"start_state": "loaded"})
        found = env.read_variables()
        env.reset(options={"start_state": "empty"})
        assert env.read_variables() == {"first": 0, "saved": 0}
        env.reset(options={"start_state": "loaded"})
        assert env.read_variables() == found
    assert found == {"first": copied[0], "saved": int.from_bytes(ram[0x6000:0x6004], "big")}


def test_the_battery_file_is_uploaded_with_the_game(tmp_path: Path) -> None:
    path = write(tmp_path, save())
    assert game_files(str(path)).paths["game/game.sav"] == tmp_path / "game.sav"


@pytest.mark.parametrize(
    ("cartridge", "ram_size", "n_bytes", "kept"),
    [
        (MBC5, 3, 32_768, 32_768),
        (MBC5, 4, 131_072, 131_072),
        (MBC1, 2, 8_192, 8_192),
        (MBC1, 1, 2_048, 2_048),
        (MBC1, 1, 8_192, 8_192),
        (MBC3_CLOCK, 3, 32_768, 32_768),
        (MBC3_CLOCK, 3, 32_768 + 44, 32_768),
        (MBC3_CLOCK, 3, 32_768 + 48, 32_768),
    ],
)
def test_sizes_that_emulators_write_are_read(
    cartridge: int, ram_size: int, n_bytes: int, kept: int, tmp_path: Path
) -> None:
    rom = tmp_path / "game.gb"
    rom.write_bytes(copying_rom(cartridge, ram_size))
    assert battery_ram(save(n_bytes), read_rom(rom)) == save(n_bytes)[:kept]


@pytest.mark.parametrize(
    ("cartridge", "ram_size", "n_bytes", "says"),
    [
        (MBC5, 3, 8_192, "it has 8,192 bytes, and the RAM .* has 32,768; name the file"),
        (MBC5, 3, 32_768 + 44, "it has 32,812 bytes"),
        (MBC5, 3, 0, "it has 0 bytes"),
        (MBC5, 3, 200_000, "larger than the RAM of any cartridge"),
        (MBC3_CLOCK, 3, 32_768 + 16, "32,768 and 44 or 48 more for its clock"),
        (MBC3_ONLY_CLOCK, 0, 48, "no RAM with a battery"),
        (0x1A, 3, 32_768, r"\(MBC5\+RAM\) has no RAM with a battery"),
        (0x00, 0, 8_192, "no RAM with a battery"),
        (MBC2, 0, 512, "lack the RAM of MBC2"),
    ],
)
def test_a_file_that_is_none_of_this_cartridge_is_named(
    cartridge: int, ram_size: int, n_bytes: int, says: str, tmp_path: Path
) -> None:
    path = write(tmp_path, save(n_bytes), copying_rom(cartridge, ram_size))
    path.write_text(GAME.replace("address: 0xA000, bank: 3", "address: 0xC020"), encoding="utf-8")
    with pytest.raises(GameFileError, match=rf"start_states\.loaded\.battery: .*{says}") as raised:
        load_game(str(path))
    assert raised.value.exit_code == 2


def test_a_battery_file_that_is_missing_or_beside_a_state_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, save())
    (tmp_path / "game.sav").unlink()
    with pytest.raises(GameFileError, match=r"line 4 .*loaded\.battery: .*No such file"):
        load_game(str(path))
    path.write_text(GAME.replace("script: [{wait: 90}]}", "file: a.state}", 1), encoding="utf-8")
    with pytest.raises(GameFileError, match=r"loaded\.battery: .*remove `battery`"):
        load_game(str(path))
    path.write_text(GAME.replace(", script: [{wait: 90}]}", "}", 1), encoding="utf-8")
    with pytest.raises(GameFileError, match="give it a `script` or a `file`"):
        load_game(str(path))
