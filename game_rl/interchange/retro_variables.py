"""Variables of stable-retro, as those of a game.yaml.

A type is order, format and bytes, as in `>d3`. Addresses are those of the console; its core for the
Game Boy, gambatte, shows the blocks below, with one bank of each.
"""

import re
from collections.abc import Mapping
from typing import Any

from game_rl.emulator.rom import Rom


class CannotBeSaidError(Exception):
    """Something of an integration has no counterpart in a game.yaml; the text says why."""


_TYPE = re.compile(r"(><|<>|>=|<=|[<>=|])([iudn])([1-8])")
_WIDEST_BINARY = 4
_NO_MASK = 2**64 - 1
_BLOCKS = (  # of memory that its core for the Game Boy shows: first and last address, and bank
    (0x8000, 0x9FFF, 0),
    (0xA000, 0xBFFF, 0),
    (0xC000, 0xCFFF, None),
    (0xD000, 0xDFFF, 1),
    (0xFE00, 0xFE9F, None),
    (0xFF80, 0xFFFF, None),
)


def retro_variable(entry: Mapping[str, Any], rom: Rom) -> dict[str, Any]:
    """Return the keys of a variable in game.yaml.

    Raises:
        CannotBeSaidError: it has no counterpart.
    """
    address = entry.get("address")
    if not isinstance(address, int) or isinstance(address, bool):
        raise CannotBeSaidError(f"its address {address!r} is not a whole number")
    block = next((b for b in _BLOCKS if b[0] <= address <= b[1]), None)
    if block is None:
        where = f"0x{address:04X}" if address >= 0 else str(address)
        raise CannotBeSaidError(f"stable-retro exposes no memory at {where}, so it has no value")
    found: dict[str, Any] = {"address": address}
    bank = block[2]
    if bank is not None and _is_banked(address, rom):
        found["bank"] = bank
    return found | _type_fields(entry)


def _is_banked(address: int, rom: Rom) -> bool:
    return rom.n_ram_banks > 1 if 0xA000 <= address < 0xC000 else rom.supports_colour


def _type_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    text = entry.get("type")
    match = _TYPE.fullmatch(str(text))
    if match is None:
        raise CannotBeSaidError(f"{text!r} is not a type of stable-retro")
    text = match[0]
    order, form, n_bytes = match.groups()
    width = int(n_bytes)
    is_middle = order in ("><", "<>", ">=")  # the bytes of each half in the other order
    if is_middle and width > 2:
        raise CannotBeSaidError(f"{text} has its bytes in middle order, which no Game Boy game has")
    mask = entry.get("mask")
    if not isinstance(mask, int | None):
        raise CannotBeSaidError(f"its mask {mask!r} is not a whole number")
    if form in "iu":
        found = _binary_fields(text, width, mask, is_signed=form == "i")
    elif mask is not None:
        raise CannotBeSaidError(f"{text} is decimal, and has a mask ({mask})")
    elif form == "d":
        found = {"type": "bcd", "bytes": width}
    else:
        found = {"type": "digits", "bytes": width, "mask": 0x0F}
    if width > 1 and order in (">", "><", ">="):
        found["endian"] = "big"
    return found


def _binary_fields(text: str, width: int, mask: int | None, *, is_signed: bool) -> dict[str, Any]:
    if width > _WIDEST_BINARY:
        raise CannotBeSaidError(f"{text} has {width} bytes, and a binary number has at most 4")
    if mask is None or mask == _NO_MASK:
        return {"type": f"{'s' if is_signed else 'u'}{8 * width}"}
    whole = (1 << 8 * width) - 1
    kept = mask & whole
    if mask < 0 or kept == 0 or (is_signed and mask > whole):
        raise CannotBeSaidError(f"its mask {mask} does not fit {text}")
    found: dict[str, Any] = {"type": f"u{8 * width}"}  # a mask takes the sign away
    return found if kept == whole else {**found, "mask": kept}
