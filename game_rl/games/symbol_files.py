"""Reads the symbols of a .sym, .noi or .map file."""

import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from game_rl.errors import GameFileError


class Location(NamedTuple):
    address: int
    bank: int | None  # None if the file does not name one


_LARGEST_FILE_BYTES = 16 * 2**20
_MOST_SYMBOLS = 250_000  # four times as many as Pokémon Crystal has
_SYM_LINE = re.compile(r"([0-9A-Fa-f]{2,3}):([0-9A-Fa-f]{4})\s+(\S+)")  # RGBDS, WLA-DX, no$gmb
_NOI_LINE = re.compile(r"DEF\s+(\S+)\s+0x([0-9A-Fa-f]{1,8})\b")  # SDCC
_SDCC_MAP_LINE = re.compile(r"([0-9A-Fa-f]{8})\s+(\S+)")
_RGBDS_MAP_BANK = re.compile(r"\w+ bank #(\d{1,3}):")
_RGBDS_MAP_LINE = re.compile(r"\$([0-9A-Fa-f]{4}) = (\S+)")


def read_symbols(path: Path) -> dict[str, Location]:
    """Read the symbols of a .sym (RGBDS), .noi (SDCC) or .map (both) file, by name.

    Raises:
        GameFileError: the file cannot be read, or it contains no symbol or too many.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise GameFileError(f"{path} is not a regular file; name a .sym, .noi or .map file")
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise GameFileError(
                f"{path} is larger than a symbol file can be (16 MiB); name another file"
            )
        with path.open(encoding="utf-8", errors="replace") as file:
            symbols = _parse(path, file)
    except FileNotFoundError:
        raise GameFileError(
            f"there is no symbol file {path}; correct `symbols`, or remove it and use addresses"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GameFileError(
            f"the symbol file {path} cannot be read ({reason}); name another, or use addresses"
        ) from None
    if not symbols:
        raise GameFileError(
            f"{path} holds no symbol; .sym lines read `00:C0A0 name`, .noi lines `DEF name 0xC0A0`"
        )
    return symbols


def _parse(path: Path, lines: Iterable[str]) -> dict[str, Location]:
    symbols: dict[str, Location] = {}
    bank: int | None = None
    for line in map(str.strip, lines):
        if len(symbols) > _MOST_SYMBOLS:
            raise GameFileError(
                f"{path} holds more than {_MOST_SYMBOLS:,} symbols, which no game has; name "
                "another file, or use addresses"
            )
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
    """Split an SDCC address, whose bank is above the lower 16 bits; there is none for bank 0."""
    value = int(digits, 16)
    return Location(value & 0xFFFF, value >> 16 or None)
