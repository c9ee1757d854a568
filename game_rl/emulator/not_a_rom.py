"""Recognise files that are not Game Boy ROMs."""

from typing import NamedTuple

from game_rl.emulator.saved_state import STATE_MAGIC


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
