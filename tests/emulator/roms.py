"""ROMs made by code: one that runs, and every way in which a file is none."""

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from game_rl.emulator.saved_state import pack_state

# at 0x150: LD HL,C000; loop: INC (HL); JR loop
_COUNTING_PROGRAM = bytes([0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD])

COUNTS_PRESSES = bytes([
    0x0E, 0x00,                          # LD C,0: whether A was held
    0x21, 0x00, 0xC0,                    # LD HL,C000
    0x3E, 0x10, 0xE0, 0x00,              # loop: LD A,$10; LDH ($00),A: asks for the buttons
    0xF0, 0x00, 0x2F,                    # LDH A,($00); CPL
    0xE6, 0x01,                          # AND 1
    0xB9, 0x28, 0xF4,                    # CP C; JR Z,loop
    0x4F, 0xB7, 0x28, 0xF0,              # LD C,A; OR A; JR Z,loop
    0x34, 0x18, 0xED,                    # INC (HL); JR loop
])  # fmt: skip
"""A program for `make_rom` that counts at 0xC000 how often A goes down."""


def make_rom(
    *,
    n_banks: int = 2,
    cartridge: int = 0x00,
    ram_size: int = 0,
    colour_flag: int = 0,
    rom_size: int | None = None,
    title: bytes = b"TESTROM",
    program: bytes = _COUNTING_PROGRAM,
) -> bytes:
    """A ROM that counts at 0xC000 as fast as it can, or runs another program."""
    rom = bytearray(n_banks * 16_384)
    rom[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])  # NOP; JP 0150
    rom[0x134 : 0x134 + len(title)] = title
    rom[0x143] = colour_flag
    rom[0x147] = cartridge
    rom[0x148] = n_banks.bit_length() - 2 if rom_size is None else rom_size
    rom[0x149] = ram_size
    rom[0x150 : 0x150 + len(program)] = program
    checksum = 0
    for byte in rom[0x134:0x14D]:
        checksum = (checksum - byte - 1) % 256
    rom[0x14D] = checksum
    return bytes(rom)


def _with_byte(address: int, value: int) -> bytes:
    rom = bytearray(make_rom())
    rom[address] = value
    return bytes(rom)


def _snes_rom() -> bytes:
    rom = bytearray(64 * 1024)
    rom[0x7FC0:0x7FD5] = b"A GAME FOR THE SNES  "
    rom[0x7FDC:0x7FE0] = bytes([0x34, 0x12, 0xCB, 0xED])
    return bytes(rom)


def _zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("game.gb", make_rom())
    return file.getvalue()


@dataclass(frozen=True)
class BadRom:
    """`make` puts the file into a folder and returns its path; `says` must be in the message."""

    name: str
    make: Callable[[Path], Path]
    says: str


def _file(name: str, data: bytes, says: str, *, file_name: str = "game.gb") -> BadRom:
    def make(folder: Path) -> Path:
        path = folder / file_name
        path.write_bytes(data)
        return path

    return BadRom(name, make, says)


def _nothing(folder: Path) -> Path:
    return folder / "game.gb"


def _nothing_with_a_neighbour(folder: Path) -> Path:
    (folder / "gome.gb").write_bytes(make_rom())
    return folder / "game.gb"


def _folder(folder: Path) -> Path:
    path = folder / "game.gb"
    path.mkdir()
    return path


def _file_as_folder(folder: Path) -> Path:
    (folder / "game.gb").write_bytes(make_rom())
    return folder / "game.gb" / "game.gb"


def _huge(folder: Path) -> Path:
    path = folder / "game.gb"
    with path.open("wb") as file:
        file.truncate(20 * 2**30)  # sparse: it takes no space
    return path


_JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(40_000)
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(40_000)
_GBA = bytes(4) + b"\x24\xff\xae\x51\x69\x9a\xa2\x21" + bytes(65_000)
_HTML = b"\n<!DOCTYPE html>\n<html><body>404</body></html>" + b" " * 40_000
_STATE = pack_state(b"\x1d" + bytes(150_000), rom_sha256="00" * 32, is_colour=False)

BAD_ROMS = (
    BadRom("missing", _nothing, "there is no ROM at"),
    BadRom("missing, another near", _nothing_with_a_neighbour, "gome.gb"),
    BadRom("a folder", _folder, "is a folder"),
    BadRom("below a file", _file_as_folder, "cannot be read"),
    BadRom("20 GiB", _huge, "more than the largest Game Boy ROM"),
    _file("empty", b"", "is empty"),
    _file("1 byte", b"\x00", "has 1 byte,"),
    _file("335 bytes", make_rom()[:0x14F], "has 335 bytes"),
    _file("half a bank", make_rom()[:8_192], "is truncated"),
    _file("one bank of four", make_rom(rom_size=1)[:16_384], "is truncated: it has 16,384 bytes"),
    _file("odd length", make_rom()[:-1], "is truncated: it has 32,767 bytes"),
    _file("whole banks missing", make_rom(n_banks=4, rom_size=3), "its header says 262,144"),
    _file("too long", make_rom() + bytes(16_384), "is too long: it has 49,152 bytes"),
    _file("three banks", make_rom(n_banks=3, rom_size=0), "let `rgbfix -v -p 0xFF` pad it"),
    _file("bad header checksum", _with_byte(0x14D, 0x55), "bad header checksum: 0x14D holds 0x55"),
    _file("changed title", _with_byte(0x134, 0x41), "bad header checksum"),
    _file("all zeros", bytes(32_768), "bad header checksum"),
    _file("all 0xFF", b"\xff" * 32_768, "bad header checksum"),
    _file("text", b"hello world\n" * 4_000, "bad header checksum"),
    _file("unknown cartridge", make_rom(cartridge=0x77), "cartridge type 0x77 is an unknown one"),
    _file("camera", make_rom(cartridge=0xFC), "cartridge type 0xFC is Pocket Camera"),
    _file("HuC1", make_rom(cartridge=0xFF), "HuC1, which PyBoy cannot run"),
    _file("MBC7", make_rom(cartridge=0x22), "MBC7"),
    _file("unknown RAM size", make_rom(ram_size=9), "RAM size 0x09"),
    _file("unknown ROM size", make_rom(rom_size=0x52), "ROM size 0x52"),
    _file("JPEG", _JPEG, "a JPEG picture"),
    _file("PNG", _PNG, "a PNG picture"),
    _file("zip", _zipped(), "a zip archive, not a Game Boy ROM; unpack it"),
    _file("gzip", gzip.compress(make_rom()), "a gzip archive"),
    _file("web page", _HTML, "a web page"),
    _file("ELF", b"\x7fELF" + bytes(40_000), "a program for Linux"),
    _file("NES", b"NES\x1a" + bytes(40_976), "a NES ROM"),
    _file("SNES", _snes_rom(), "a SNES ROM"),
    _file("Game Boy Advance", _GBA, "a Game Boy Advance ROM"),
    _file("our state", _STATE, "a saved emulator state"),
    _file("PyBoy's state", bytes(153_524), "a saved emulator state", file_name="game.gb.state"),
    _file("battery save", bytes(32_768), "a battery save", file_name="game.sav"),
    _file("LFS pointer", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
)
