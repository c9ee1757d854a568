"""TensorBoard event files, written without TensorBoard to keep the controller's memory small.

A file is a sequence of records: length (uint64), its checksum, the data, its checksum; little
endian.
The data is a protocol buffer `Event` (tensorboard/compat/proto/event.proto, summary.proto); the
checksum is CRC-32C (RFC 3720), rotated right by 15 bits, plus 0xa282ead8 (TensorFlow's
tsl/lib/io/record_writer.cc).
"""

import struct
from collections.abc import Mapping

_POLYNOMIAL = 0x82F63B78  # CRC-32C, its bits reversed
_MASK_DELTA = 0xA282EAD8


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    return table


_TABLE = _table()


def event_file(values: Mapping[str, float], *, step: int, wall_time_s: float) -> bytes:
    """Return a complete file with one number for each tag at one step."""
    header = _double(1, wall_time_s) + _bytes(3, b"brain.Event:2")
    summary = b"".join(
        _bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items()
    )
    event = _double(1, wall_time_s) + _key(2, 0) + _varint(step) + _bytes(5, summary)
    return _record(header) + _record(event)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _double(number: int, value: float) -> bytes:
    return _key(number, 1) + struct.pack("<d", value)


def _float(number: int, value: float) -> bytes:
    return _key(number, 5) + struct.pack("<f", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value
