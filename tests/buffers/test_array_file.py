import io
import json
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from game_rl.buffers import array_file
from game_rl.buffers.array_file import dump_arrays, read_arrays, row_pieces

Arrays = dict[str, NDArray[Any]]
DTYPES = [np.dtype(name) for name in ("u1", "u2", "u4", "i8", "f4", "?")]
SOME = st.dictionaries(
    st.text(max_size=5).filter(lambda name: name != "__metadata__"),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
    ),
    max_size=4,
)


def written(arrays: dict[str, Any]) -> bytes:
    return b"".join(dump_arrays(arrays))


def assert_same(found: dict[str, Any], expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        same = np.asarray(found[name])
        assert (same.dtype, same.shape) == (array.dtype, array.shape)
        assert same.tobytes() == array.tobytes()


@given(SOME)
def test_the_library_reads_what_we_write(arrays: Arrays) -> None:
    assert_same(safetensors.numpy.load(written(arrays)), arrays)


@given(SOME)
def test_we_read_what_the_library_writes(arrays: Arrays) -> None:
    assert_same(read_arrays(io.BytesIO(safetensors.numpy.save(arrays))), arrays)


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 100), st.integers(0, 50))
def test_rows_are_read_and_written_in_pieces(n: int, width: int, piece: int, start: int) -> None:
    array = np.arange(n * width, dtype=np.int64).reshape(n, width)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(array_file, "PIECE_BYTES", piece)
        header, *pieces = dump_arrays({"a": torch.from_numpy(array)})
        assert b"".join(pieces) == array.tobytes()
        assert all(len(part) <= max(piece, 8 * width) for part in pieces)
        stored = read_arrays(io.BytesIO(header + b"".join(pieces)))["a"]
        read = [stored[rows] for rows in row_pieces(stored)]
    assert sum(map(len, read)) == n
    np.testing.assert_array_equal(stored[start : start + 7], array[start : start + 7])


def with_header(**changes: Any) -> bytes:
    entry = {"dtype": "U8", "shape": [2, 3], "data_offsets": [0, 6]} | changes
    text = json.dumps({"a": entry}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(6)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 7,
        (2**63).to_bytes(8, "little") + b"{}",
        (10 * 2**30).to_bytes(8, "little"),
        (2).to_bytes(8, "little") + b"[]",
        (9).to_bytes(8, "little") + b"\xff" * 9,
        with_header(dtype="F8_E4M3"),
        with_header(shape=[2, 4]),
        with_header(shape=[-2, -3]),
        with_header(shape=[2**47, 2**47, 2**47]),
        with_header(shape="6"),
        with_header(data_offsets=[0, 7]),
        with_header(data_offsets=[1, 7]),
        with_header(data_offsets=[6, 0]),
        with_header(data_offsets=[-6, 0]),
        with_header(data_offsets=[0, 6, 12]),
        with_header(code="import os"),
        with_header()[:-1],
    ],
)
def test_what_is_no_such_file_is_refused_before_anything_is_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_arrays(io.BytesIO(data))
    assert read_arrays(io.BytesIO(with_header()))["a"].shape == (2, 3)


@given(st.binary(max_size=60).filter(lambda data: data.strip() != b"{}"))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_arrays(io.BytesIO(len(data).to_bytes(8, "little") + data + b"x"))
