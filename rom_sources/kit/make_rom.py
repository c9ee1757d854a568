"""Make a ROM and its symbol file from the linker's output.

Usage: make_rom.py dmg|cgb TITLE game.ihx game.noi game.gb game.sym

The header gets the title and both checksums. The logo that the console's own boot ROM requires is a
trademark and is left out; emulators with an open boot ROM do not need it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROM_BYTES = 32 * 1024
LONGEST_TITLE = 15
COLOUR_ONLY = 0xC0


def load_ihx(text: str) -> bytearray:
    rom = bytearray(ROM_BYTES)
    used = bytearray(ROM_BYTES)
    for line in text.split():
        record = bytes.fromhex(line.removeprefix(":"))
        if sum(record) % 256:
            raise SystemExit(f"bad checksum in the record {line}")
        length, address, kind = record[0], int.from_bytes(record[1:3], "big"), record[3]
        if kind == 0:
            if address + length > ROM_BYTES:
                raise SystemExit(
                    f"{address:#06x} lies outside the {ROM_BYTES} bytes of the ROM: the game is "
                    "too large, or a variable has an initial value, which belongs in main"
                )
            if any(used[address : address + length]):
                raise SystemExit(f"two areas of the program overlap at {address:#06x}")
            used[address : address + length] = b"\x01" * length
            rom[address : address + length] = record[4 : 4 + length]
    return rom


def write_header(rom: bytearray, title: bytes, *, colour: bool) -> None:
    if len(title) > LONGEST_TITLE:
        raise SystemExit(f"the title {title.decode()} has over {LONGEST_TITLE} letters")
    rom[0x104:0x150] = bytes(0x150 - 0x104)
    rom[0x134 : 0x134 + len(title)] = title
    rom[0x143] = COLOUR_ONLY if colour else 0
    rom[0x14A] = 1  # not for Japan alone
    rom[0x14B] = 0x33  # "see the new licensee code", which stays zero (none)
    rom[0x14D] = -sum(byte + 1 for byte in rom[0x134:0x14D]) % 256
    rom[0x14E:0x150] = (sum(rom) % 65536).to_bytes(2, "big")


def symbols(noi: str) -> str:
    """Return the program's own symbols as lines "bank:address name", in order of address."""
    found = set()
    for line in noi.splitlines():
        words = line.split()
        if (
            len(words) == 3
            and words[0] == "DEF"
            and words[1].startswith("_")
            and not words[1].startswith("__")
        ):
            found.add((int(words[2], 16), words[1]))
    lines = [f"00:{address:04X} {name}" for address, name in sorted(found)]
    return "\n".join(["; made by kit/make_rom.py", *lines, ""])


def main(hardware: str, title: str, ihx: str, noi: str, rom_path: str, symbol_path: str) -> None:
    rom = load_ihx(Path(ihx).read_text(encoding="utf-8"))
    write_header(rom, title.encode("ascii"), colour=hardware == "cgb")
    Path(rom_path).write_bytes(rom)
    Path(symbol_path).write_text(symbols(Path(noi).read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
