"""Reading and writing at a position, compared with slices of the whole file."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from game_rl.files.durable_files import (
    BINARY,
    read_at,
    read_by_seeking,
    write_at,
    write_by_seeking,
)

_SIZE = 300


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(bytes(i % 251 for i in range(_SIZE)))
    descriptor = os.open(path, os.O_RDWR | BINARY)
    yield descriptor
    os.close(descriptor)


def test_reading_returns_what_a_slice_would(file: int) -> None:
    whole, rng = bytes(i % 251 for i in range(_SIZE)), random.Random(0)
    for _ in range(100):
        offset, n_bytes = rng.randrange(_SIZE + 50), rng.randrange(_SIZE)
        expected = whole[offset : offset + n_bytes]
        assert read_by_seeking(file, n_bytes, offset) == expected
        assert read_at(file, n_bytes, offset) == expected


def test_writing_changes_what_a_slice_would(file: int) -> None:
    whole, rng = bytearray(i % 251 for i in range(_SIZE)), random.Random(0)
    for number in range(40):
        data, offset = rng.randbytes(rng.randrange(1, 20)), rng.randrange(_SIZE + 10)
        whole.extend(bytes(max(0, offset + len(data) - len(whole))))
        whole[offset : offset + len(data)] = data
        write = write_by_seeking if number % 2 else write_at
        assert write(file, memoryview(data), offset) == len(data)
        assert read_by_seeking(file, 10_000, 0) == whole
