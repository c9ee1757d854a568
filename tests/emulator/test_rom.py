import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.emulator.rom import SUPPORTED_CARTRIDGES, header_checksum, read_rom
from game_rl.errors import RomError
from tests.emulator.roms import BAD_ROMS, BadRom, make_rom


def write(folder: Path, data: bytes) -> Path:
    path = folder / "game.gb"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("bad", BAD_ROMS, ids=lambda bad: bad.name)
def test_a_wrong_rom_is_refused_and_named_with_its_path(bad: BadRom, tmp_path: Path) -> None:
    path = bad.make(tmp_path)
    with pytest.raises(RomError) as caught:
        read_rom(path)
    assert bad.says in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_rom_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, make_rom())
    path.chmod(0)
    with pytest.raises(RomError, match="may not be read"):
        read_rom(path)


@pytest.mark.skipif(os.name != "posix", reason="named pipes are POSIX")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    path = tmp_path / "game.gb"
    os.mkfifo(path)
    with pytest.raises(RomError, match="not a regular file"):
        read_rom(path)


@pytest.mark.parametrize("cartridge", sorted(SUPPORTED_CARTRIDGES))
def test_every_supported_cartridge_is_read(cartridge: int, tmp_path: Path) -> None:
    rom = read_rom(write(tmp_path, make_rom(cartridge=cartridge)))
    assert rom.cartridge == SUPPORTED_CARTRIDGES[cartridge]


def test_a_good_rom_tells_what_it_is(tmp_path: Path) -> None:
    data = make_rom(n_banks=8, cartridge=0x1B, ram_size=3, colour_flag=0x80, title=b"GOOD GAME")
    rom = read_rom(write(tmp_path, data))
    assert (rom.title, rom.n_rom_banks, rom.n_ram_banks) == ("GOOD GAME", 8, 4)
    assert rom.supports_colour
    assert not rom.requires_colour
    assert rom.cartridge.has_battery
    assert rom.sha256 == hashlib.sha256(data).hexdigest()
    assert rom.data == data


def test_a_small_game_without_its_empty_second_bank_is_accepted_with_a_warning(
    tmp_path: Path,
) -> None:
    whole, half = read_rom(write(tmp_path, make_rom())), make_rom()[:16_384]
    assert whole.warning is None
    rom = read_rom(write(tmp_path, half))
    assert rom.warning is not None
    assert rom.warning.startswith(
        f"{tmp_path / 'game.gb'} has 16,384 bytes, but its header says 32,768; "
    )
    assert rom.data == half + b"\xff" * 16_384
    assert (rom.n_rom_banks, rom.sha256) == (2, hashlib.sha256(half).hexdigest())


def test_colour_only_cartridges_are_known(tmp_path: Path) -> None:
    assert read_rom(write(tmp_path, make_rom(colour_flag=0xC0))).requires_colour


def test_a_wrong_global_checksum_is_no_error(tmp_path: Path) -> None:
    data = bytearray(make_rom())
    data[0x14E:0x150] = b"\x12\x34"
    assert read_rom(write(tmp_path, bytes(data))).title == "TESTROM"


@pytest.mark.parametrize(
    ("header", "title"),
    [
        (b"2048-GB    XXXX", "2048-GB"),  # a maker's code, 0x13F to 0x142
        (b"NINJA  GAME", "NINJA GAME"),  # spaces of the title itself
        (b"A  B       ABCE", "A B"),
        (b"  LEFT", "LEFT"),
        (b"SPACES   ", "SPACES"),
        (b"SUPER ROBO WARS", "SUPER ROBO WARS"),
    ],
)
def test_spaces_that_pad_a_title_are_left_out_and_those_in_it_are_not(
    tmp_path: Path, header: bytes, title: str
) -> None:
    assert read_rom(write(tmp_path, make_rom(title=header))).title == title


def test_a_title_that_is_no_text_is_cleaned(tmp_path: Path) -> None:
    assert read_rom(write(tmp_path, make_rom(title=b"A\x07B\xffC"))).title == "ABC"


@given(st.binary(min_size=0x150, max_size=0x150))
def test_the_header_checksum_is_that_of_the_pan_docs(header: bytes) -> None:
    expected = 0
    for address in range(0x134, 0x14D):
        expected = (expected - header[address] - 1) & 0xFF
    assert header_checksum(header) == expected
