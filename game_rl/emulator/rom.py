"""Read a ROM file, check what PyBoy does not check, and recognise files that are no ROM.

The header fields are those of Pan Docs, "The Cartridge Header". The supported cartridges are those
of PyBoy 2.8.
"""

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from game_rl.emulator.saved_state import STATE_MAGIC
from game_rl.errors import RomError

BANK_BYTES = 16_384
SMALLEST_ROM_BYTES = 2 * BANK_BYTES
LARGEST_ROM_BYTES = 512 * BANK_BYTES  # 8 MiB, what MBC5 can address

_HEADER_END = 0x150
_TITLE = slice(0x134, 0x143)
_PADDING_BEFORE_CODE = slice(9, 11)
"""Characters of a short title before its last four, which may be a code of the maker."""
_COLOUR_FLAG = 0x143
_CARTRIDGE_TYPE = 0x147
_ROM_SIZE = 0x148
_RAM_SIZE = 0x149
_CHECKSUM = 0x14D
_LARGEST_ROM_SIZE_CODE = 8

_RAM_BANKS = {0x00: 0, 0x01: 1, 0x02: 1, 0x03: 4, 0x04: 16, 0x05: 8}


@dataclass(frozen=True)
class CartridgeType:
    name: str
    has_battery: bool = False
    has_clock: bool = False
    has_half_bytes: bool = False
    """Each byte of its RAM has only four bits."""


SUPPORTED_CARTRIDGES = {
    0x00: CartridgeType("ROM"),
    0x01: CartridgeType("MBC1"),
    0x02: CartridgeType("MBC1+RAM"),
    0x03: CartridgeType("MBC1+RAM+BATTERY", has_battery=True),
    0x05: CartridgeType("MBC2", has_half_bytes=True),
    0x06: CartridgeType("MBC2+BATTERY", has_battery=True, has_half_bytes=True),
    0x08: CartridgeType("ROM+RAM"),
    0x09: CartridgeType("ROM+RAM+BATTERY", has_battery=True),
    0x0F: CartridgeType("MBC3+TIMER+BATTERY", has_battery=True, has_clock=True),
    0x10: CartridgeType("MBC3+TIMER+RAM+BATTERY", has_battery=True, has_clock=True),
    0x11: CartridgeType("MBC3"),
    0x12: CartridgeType("MBC3+RAM"),
    0x13: CartridgeType("MBC3+RAM+BATTERY", has_battery=True),
    0x19: CartridgeType("MBC5"),
    0x1A: CartridgeType("MBC5+RAM"),
    0x1B: CartridgeType("MBC5+RAM+BATTERY", has_battery=True),
    0x1C: CartridgeType("MBC5+RUMBLE"),
    0x1D: CartridgeType("MBC5+RUMBLE+RAM"),
    0x1E: CartridgeType("MBC5+RUMBLE+RAM+BATTERY", has_battery=True),
}
_UNSUPPORTED_CARTRIDGES = {
    0x0B: "MMM01",
    0x0C: "MMM01+RAM",
    0x0D: "MMM01+RAM+BATTERY",
    0x20: "MBC6",
    0x22: "MBC7 (tilt sensor)",
    0xFC: "Pocket Camera",
    0xFD: "Bandai TAMA5",
    0xFE: "HuC3",
    0xFF: "HuC1",
}


@dataclass(frozen=True)
class Rom:
    """A ROM that PyBoy can run; it is pickled to every worker.

    Attributes:
        data: the content of the file, with a missing second bank filled with 0xFF.
        sha256, sha1: those of the file.
        warning: what is wrong with a ROM that is accepted all the same.
    """

    path: Path
    data: bytes = field(repr=False)
    sha256: str
    sha1: str
    title: str
    cartridge: CartridgeType
    n_ram_banks: int
    supports_colour: bool
    requires_colour: bool
    warning: str | None = None

    @property
    def n_rom_banks(self) -> int:
        return len(self.data) // BANK_BYTES

    @property
    def is_absent(self) -> bool:
        """Whether it stands for a ROM that is not there."""
        return not self.data

    @property
    def has_small_ram(self) -> bool:
        """Whether the only bank of RAM has 2 KiB, a quarter of a bank."""
        return self.n_ram_banks == 1 and self.data[_RAM_SIZE : _RAM_SIZE + 1] == b"\x01"


def absent_rom(path: Path, *, sha256: str = "", sha1: str = "") -> Rom:
    """Return what stands for a ROM that is not there, so that a game file can be checked.

    It cannot be played, and has the most that any cartridge has.
    """
    return Rom(
        path=path,
        data=b"",
        sha256=sha256,
        sha1=sha1,
        title="",
        cartridge=CartridgeType("absent"),
        n_ram_banks=max(_RAM_BANKS.values()),
        supports_colour=True,
        requires_colour=False,
    )


def read_rom(path: Path, *, named_by: str = "`rom.path`") -> Rom:
    """Read the ROM at `path` and check its header.

    Args:
        named_by: what names the file, for the message if there is none.

    The checksum of the whole file is not checked: a Game Boy does not check it either, and patched
    games break it.

    Raises:
        RomError: there is no such file, it cannot be read, or it is not a ROM that PyBoy can run.
    """
    data = _read_file(path, named_by)
    _check_looks_like_a_rom(path, data)
    _check_header_checksum(path, data)
    lacks_a_bank = len(data) == BANK_BYTES and data[_ROM_SIZE] == 0
    if not lacks_a_bank:
        _check_size(path, data)
    cartridge = _cartridge_type(path, data[_CARTRIDGE_TYPE])
    colour_flag = data[_COLOUR_FLAG]
    return Rom(
        path=path,
        data=data.ljust(SMALLEST_ROM_BYTES, b"\xff"),  # PyBoy would read beyond its end
        sha256=hashlib.sha256(data).hexdigest(),
        sha1=hashlib.sha1(data, usedforsecurity=False).hexdigest(),
        title=_title(data),
        cartridge=cartridge,
        n_ram_banks=_n_ram_banks(path, cartridge, data[_RAM_SIZE]),
        supports_colour=bool(colour_flag & 0x80),
        requires_colour=colour_flag & 0xC0 == 0xC0,
        warning=_missing_bank(path) if lacks_a_bank else None,
    )


def header_checksum(data: bytes) -> int:
    """Return minus the sum of (byte + 1) over 0x134..0x14C, modulo 256 (Pan Docs)."""
    return -(sum(data[0x134:_CHECKSUM]) + _CHECKSUM - 0x134) & 0xFF


def _read_file(path: Path, named_by: str) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise RomError(f"{path} is a folder, not a ROM; name a file in it{_roms_near(path)}")
        if not stat.S_ISREG(status.st_mode):
            raise RomError(f"{path} is not a regular file; give the path of a .gb or .gbc file")
        if status.st_size > LARGEST_ROM_BYTES:
            raise RomError(
                f"{path} has {status.st_size:,} bytes, more than the largest Game Boy ROM "
                f"({LARGEST_ROM_BYTES:,}); give the path of a .gb or .gbc file"
            )
        with path.open("rb") as file:
            return file.read(LARGEST_ROM_BYTES + 1)  # files of /proc have no size
    except FileNotFoundError:
        raise RomError(
            f"there is no ROM at {path}; put the file there or correct {named_by}"
            f"{_roms_near(path.parent)}"
        ) from None
    except PermissionError:
        raise RomError(
            f"{path} may not be read by this user; run `chmod u+r {path}` or give another copy"
        ) from None
    except (OSError, ValueError) as error:
        raise RomError(f"{path} cannot be read ({error}); copy the ROM again") from None


def _roms_near(folder: Path) -> str:
    found: list[Path] = []
    places = dict.fromkeys((folder, Path("roms")))
    for place in places:
        try:
            entries = sorted(place.iterdir())
        except OSError:
            continue
        found += [e for e in entries if e.suffix.lower() in {".gb", ".gbc"} and e not in found]
    if not found:
        looked = " or ".join(f"{place}{os.sep}" for place in places)
        return f" (no .gb or .gbc file in {looked})"
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return f" (found: {', '.join(str(f) for f in found[:5])}{more})"


def _check_looks_like_a_rom(path: Path, data: bytes) -> None:
    if not data:
        raise RomError(f"{path} is empty; the copy failed, copy the ROM again")
    other = what_is_it(data, path.suffix.lower())
    if other is not None:
        raise RomError(f"{path} is {other.name}, not a Game Boy ROM; {other.way_out}")
    if len(data) < _HEADER_END:
        raise RomError(
            f"{path} has {len(data):,} byte{'s' if len(data) > 1 else ''}, the smallest Game Boy "
            f"ROM has {SMALLEST_ROM_BYTES:,}; the copy was cut short, copy the ROM again"
        )


def _check_header_checksum(path: Path, data: bytes) -> None:
    found = data[_CHECKSUM]
    computed = header_checksum(data)
    if found != computed:
        raise RomError(
            f"{path} has a bad header checksum: 0x14D holds 0x{found:02X}, the header sums to "
            f"0x{computed:02X}; the file is damaged or not a Game Boy ROM, copy the ROM again "
            "(after patching a game: run `rgbfix -f h`)"
        )


def _check_size(path: Path, data: bytes) -> None:
    code = data[_ROM_SIZE]
    if code > _LARGEST_ROM_SIZE_CODE:
        raise RomError(
            f"{path}: the header's ROM size 0x{code:02X} (at 0x148) is unknown, 0x00 to "
            f"0x{_LARGEST_ROM_SIZE_CODE:02X} exist; the file is damaged or an unusual dump"
        )
    declared = SMALLEST_ROM_BYTES << code
    if len(data) < declared:
        raise RomError(
            f"{path} is truncated: it has {len(data):,} bytes, its header says {declared:,}; "
            "copy the ROM again"
        )
    if len(data) > declared:
        raise RomError(
            f"{path} is too long: it has {len(data):,} bytes, its header says {declared:,}; "
            "use a clean dump, cut the rest off, or, if it is a game that you have built, let "
            "`rgbfix -v -p 0xFF` pad it and correct its header"
        )


def _missing_bank(path: Path) -> str:
    return (
        f"{path} has {BANK_BYTES:,} bytes, but its header says {SMALLEST_ROM_BYTES:,}; the rest is "
        "taken to be empty, which is right for a small game; if it shows no picture, the copy was "
        "cut short, copy the ROM again"
    )


def _cartridge_type(path: Path, code: int) -> CartridgeType:
    if code in SUPPORTED_CARTRIDGES:
        return SUPPORTED_CARTRIDGES[code]
    name = _UNSUPPORTED_CARTRIDGES.get(code, "an unknown one")
    raise RomError(
        f"{path}: cartridge type 0x{code:02X} is {name}, which PyBoy cannot run; "
        "ROM, MBC1, MBC2, MBC3 and MBC5 games work, choose one of those"
    )


def _n_ram_banks(path: Path, cartridge: CartridgeType, code: int) -> int:
    if cartridge.has_half_bytes:  # 512 of them in the controller, whatever the header says
        return 1
    if code not in _RAM_BANKS:
        raise RomError(
            f"{path}: the header's RAM size 0x{code:02X} (at 0x149) is unknown, 0x00 to 0x05 "
            "exist; the file is damaged or an unusual dump, copy the ROM again"
        )
    return _RAM_BANKS[code]


def _title(data: bytes) -> str:
    text = data[_TITLE].split(b"\0")[0].decode("ascii", errors="replace")
    if text[_PADDING_BEFORE_CODE] == "  ":
        text = text[: _PADDING_BEFORE_CODE.stop]
    shown = "".join(c for c in text if c.isprintable() and c != "\N{REPLACEMENT CHARACTER}")
    return " ".join(shown.split())


class OtherFile(NamedTuple):
    name: str
    way_out: str


_GIVE_THE_GAME = "give the path of the .gb or .gbc file"
_UNPACK = "unpack it and give the path of the .gb or .gbc file in it"
_OTHER_CONSOLE = "this emulator runs Game Boy and Game Boy Color games only"

_MAGIC: tuple[tuple[int, bytes, OtherFile], ...] = (
    (0, b"\xff\xd8\xff", OtherFile("a JPEG picture", _GIVE_THE_GAME)),
    (0, b"\x89PNG\r\n\x1a\n", OtherFile("a PNG picture", _GIVE_THE_GAME)),
    (0, b"GIF8", OtherFile("a GIF picture", _GIVE_THE_GAME)),
    (0, b"%PDF", OtherFile("a PDF", _GIVE_THE_GAME)),
    (0, b"PK\x03\x04", OtherFile("a zip archive", _UNPACK)),
    (0, b"\x1f\x8b", OtherFile("a gzip archive", _UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", OtherFile("a 7-Zip archive", _UNPACK)),
    (0, b"Rar!\x1a\x07", OtherFile("a RAR archive", _UNPACK)),
    (0, b"\x7fELF", OtherFile("a program for Linux", _GIVE_THE_GAME)),
    (0, b"NES\x1a", OtherFile("a NES ROM", _OTHER_CONSOLE)),
    (4, b"\x24\xff\xae\x51\x69\x9a\xa2\x21", OtherFile("a Game Boy Advance ROM", _OTHER_CONSOLE)),
    (0, b"\x80\x37\x12\x40", OtherFile("a Nintendo 64 ROM", _OTHER_CONSOLE)),
    (0, STATE_MAGIC, OtherFile("a saved emulator state", _GIVE_THE_GAME)),
    (0, b"version https://git-lfs", OtherFile("a Git LFS pointer", "run `git lfs pull`")),
)
_SUFFIXES: dict[str, OtherFile] = {
    ".sav": OtherFile("a battery save", _GIVE_THE_GAME),
    ".ram": OtherFile("a battery save", _GIVE_THE_GAME),
    ".rtc": OtherFile("a saved clock", _GIVE_THE_GAME),
    ".state": OtherFile("a saved emulator state", _GIVE_THE_GAME),
    ".nes": OtherFile("a NES ROM", _OTHER_CONSOLE),
    ".sfc": OtherFile("a SNES ROM", _OTHER_CONSOLE),
    ".smc": OtherFile("a SNES ROM", _OTHER_CONSOLE),
    ".gba": OtherFile("a Game Boy Advance ROM", _OTHER_CONSOLE),
}
_SNES_CHECKSUMS = (0x7FDC, 0xFFDC)  # complement, then checksum, in LoROM and HiROM headers


def what_is_it(data: bytes, suffix: str) -> OtherFile | None:
    """Recognise `data` by its first bytes, markup or file name suffix; None if unknown."""
    for offset, magic, other in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return other
    if data[:512].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return OtherFile("a web page", "the download failed, fetch the ROM itself")
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if _is_snes(data):
        return OtherFile("a SNES ROM", _OTHER_CONSOLE)
    return None


def _is_snes(data: bytes) -> bool:
    for offset in _SNES_CHECKSUMS:
        complement = int.from_bytes(data[offset : offset + 2], "little")
        checksum = int.from_bytes(data[offset + 2 : offset + 4], "little")
        # 0x0000 next to 0xFFFF is padding, not a header; a Game Boy title is in another place
        if complement ^ checksum == 0xFFFF and complement not in {0, 0xFFFF}:
            title = data[offset - 28 : offset - 7]
            if len(title) == 21 and all(32 <= c < 127 for c in title):
                return True
    return False
