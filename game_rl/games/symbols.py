"""Names of addresses, as assemblers and linkers write them."""

import re
from pathlib import Path
from typing import NamedTuple

from game_rl.errors import GameFileError


class Location(NamedTuple):
    address: int
    bank: int | None  # None: the file does not say


_LARGEST_FILE_BYTES = 16 * 2**20
_SYM_LINE = re.compile(r"([0-9A-Fa-f]{2,3}):([0-9A-Fa-f]{4})\s+(\S+)")  # RGBDS, WLA-DX, no$gmb
_NOI_LINE = re.compile(r"DEF\s+(\S+)\s+0x([0-9A-Fa-f]+)")  # SDCC
_SDCC_MAP_LINE = re.compile(r"([0-9A-Fa-f]{8})\s+(\S+)")
_RGBDS_MAP_BANK = re.compile(r"\w+ bank #(\d+):")
_RGBDS_MAP_LINE = re.compile(r"\$([0-9A-Fa-f]{4}) = (\S+)")


def read_symbols(path: Path) -> dict[str, Location]:
    """The symbols of a .sym (RGBDS), .noi (SDCC) or .map (both) file, by name.

    Raises:
        GameFileError: the file cannot be read, or no line of it is a symbol.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise GameFileError(f"{path} is larger than a symbol file can be (16 MiB)")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise GameFileError(
            f"there is no symbol file {path}; correct `symbols`, or remove it and use addresses"
        ) from None
    except OSError as error:
        raise GameFileError(f"the symbol file {path} cannot be read: {error.strerror}") from None
    symbols = _parse([line.strip() for line in lines])
    if not symbols:
        raise GameFileError(
            f"{path} holds no symbol; .sym lines read `00:C0A0 name`, .noi lines `DEF name 0xC0A0`"
        )
    return symbols


def _parse(lines: list[str]) -> dict[str, Location]:
    symbols: dict[str, Location] = {}
    bank: int | None = None
    for line in lines:
        if match := _SYM_LINE.match(line):
            symbols[match[3]] = Location(int(match[2], 16), int(match[1], 16))
        elif match := _NOI_LINE.match(line):
            symbols[match[1]] = _sdcc_location(match[2])
        elif match := _RGBDS_MAP_BANK.match(line):
            bank = int(match[1])
        elif match := _RGBDS_MAP_LINE.match(line):
            symbols[match[2]] = Location(int(match[1], 16), bank)
        elif match := _SDCC_MAP_LINE.match(line):
            symbols[match[2]] = _sdcc_location(match[1])
    return symbols


def _sdcc_location(digits: str) -> Location:
    """SDCC puts the bank above the 16-bit address and writes nothing for bank 0."""
    value = int(digits, 16)
    return Location(value & 0xFFFF, value >> 16 or None)
