"""An envelope around an emulator's raw state: identifies the game, detects damage, compresses.

PyBoy silently restores a state of another game or half a state, and is left half restored after an
error. The envelope is checked before the emulator is touched. A state of 150 to 310 kB packs to a
few kB.

Layout (sizes in bytes): magic (8), SHA-256 of the ROM (32), 1 for colour (1), CRC-32 of the raw
state (4, little endian), the raw state compressed with zlib.
"""

import struct
import zlib

from game_rl.errors import EmulatorError

STATE_MAGIC = b"GRLSTAT1"

PACKED_STATE_BYTES = 4_000
"""Usual size of a packed state without its picture: of beacon and duel 3,800 to 4,100, of seasons
3,150; a cartridge with much RAM takes more."""

_HEADER = struct.Struct("<8s32s?I")
_LARGEST_RAW_BYTES = 4 * 2**20  # PyBoy's largest is 0.4 MB; a forged file must not fill the RAM


def pack_state(raw: bytes, *, rom_sha256: str, is_colour: bool) -> bytes:
    header = _HEADER.pack(STATE_MAGIC, bytes.fromhex(rom_sha256), is_colour, zlib.crc32(raw))
    return header + zlib.compress(raw, level=1)


def is_packed(state: bytes) -> bool:
    return state.startswith(STATE_MAGIC)


def unpack_state(state: bytes, *, rom_sha256: str, is_colour: bool) -> bytes:
    """Return the raw state.

    Raises:
        EmulatorError: `state` is damaged, or was saved with another ROM or hardware.
    """
    if len(state) < _HEADER.size or not is_packed(state):
        raise EmulatorError(
            f"this is not a complete emulator state ({len(state):,} bytes); save the state again"
        )
    _, owner, colour, checksum = _HEADER.unpack_from(state)
    if owner.hex() != rom_sha256:
        raise EmulatorError(
            f"the state was saved with another ROM (sha256 {owner.hex()[:12]}…, this one is "
            f"{rom_sha256[:12]}…); save it again with this ROM"
        )
    if colour != is_colour:
        raise EmulatorError(
            f"the state was saved on {_hardware(colour)} hardware, but the game runs on "
            f"{_hardware(is_colour)}; save it again or change `hardware` in game.yaml"
        )
    raw = _decompress(state[_HEADER.size :])
    if raw is None or zlib.crc32(raw) != checksum:
        raise EmulatorError("the emulator state is damaged; save the state again")
    return raw


def _decompress(packed: bytes) -> bytes | None:
    decompressor = zlib.decompressobj()
    try:
        raw = decompressor.decompress(packed, _LARGEST_RAW_BYTES)
    except zlib.error:
        return None
    return raw if decompressor.eof and not decompressor.unused_data else None


def _hardware(is_colour: bool) -> str:
    return "cgb" if is_colour else "dmg"
