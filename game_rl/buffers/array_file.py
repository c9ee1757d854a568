"""Arrays in a safetensors file that is written and read a piece at a time.

The format (https://github.com/huggingface/safetensors#format) is the length of a JSON header as
eight little-endian bytes, the header, and the numbers. The safetensors library makes one byte
string of the whole file, which would copy a replay in memory whenever it is saved or loaded.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from game_rl.files.saved import Saved

PIECE_BYTES = 4 << 20
_DTYPES = {
    code: np.dtype(name)
    for code, name in {
        "U8": "<u1", "U16": "<u2", "U32": "<u4", "I64": "<i8", "F32": "<f4", "BOOL": "|b1",
    }.items()
}  # fmt: skip
_LENGTH_BYTES = 8
_LARGEST_HEADER_BYTES = 64 << 10

_Natural = Annotated[int, Field(ge=0, le=2**48)]


class _Entry(Saved):
    """The position of an array in the file; offsets count from the end of the header."""

    dtype: str
    shape: tuple[_Natural, ...]
    data_offsets: tuple[_Natural, _Natural]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * _DTYPES[self.dtype].itemsize


_HEADER = TypeAdapter(dict[str, _Entry])


class StoredArray:
    """An array in a file, read on access: whole by `np.asarray(a)`, or some rows by `a[3:7]`."""

    def __init__(
        self, file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], at: int
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self._file = file
        self._at = at

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(len(self))
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self._read((max(0, stop - start), *self.shape[1:]), self._at + start * row_bytes)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the whole array for `numpy.asarray`; always a new array of the stored dtype."""
        return self._read(self.shape, self._at)

    def _read(self, shape: tuple[int, ...], at: int) -> NDArray[Any]:
        n_bytes = math.prod(shape) * self.dtype.itemsize
        self._file.seek(at)
        data = bytearray(self._file.read(n_bytes))
        return np.frombuffer(data, self.dtype).reshape(shape)


def dump_arrays(arrays: Mapping[str, NDArray[Any] | torch.Tensor]) -> Iterator[bytes]:
    """Yield the file's content in pieces; tensors are copied from their device piece by piece."""
    codes = {dtype: code for code, dtype in _DTYPES.items()}
    header = {}
    offset = 0
    for name, array in arrays.items():
        entry = _Entry(
            dtype=codes[_numpy(array[:0] if array.ndim else array).dtype],
            shape=tuple(array.shape),
            data_offsets=(offset, offset + array.nbytes),
        )
        header[name] = entry.model_dump()
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    yield len(text).to_bytes(_LENGTH_BYTES, "little") + text
    for array in arrays.values():
        if array.ndim == 0:
            yield _numpy(array).tobytes()
            continue
        for rows in row_pieces(array):
            yield _numpy(array[rows]).tobytes()


def read_arrays(file: BinaryIO) -> dict[str, StoredArray]:
    """Return the arrays of a file, which must stay open while they are used.

    Raises:
        ValueError: it is not a safetensors file, or has a dtype that is not supported here.
    """
    file_bytes = file.seek(0, 2)
    file.seek(0)
    header_bytes = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if header_bytes > _LARGEST_HEADER_BYTES:
        raise ValueError(f"its header is too large, {header_bytes:,} bytes")
    entries = _HEADER.validate_json(file.read(header_bytes))
    begin = _LENGTH_BYTES + header_bytes
    found = {}
    for name, entry in entries.items():
        start, stop = entry.data_offsets
        if entry.dtype not in _DTYPES:
            raise ValueError(f"{name} has the unsupported type {entry.dtype}")
        if stop - start != entry.nbytes or begin + stop > file_bytes:
            raise ValueError(f"the offsets of {name} do not fit its shape or the file's size")
        found[name] = StoredArray(file, _DTYPES[entry.dtype], entry.shape, begin + start)
    return found


def row_pieces(array: NDArray[Any] | torch.Tensor | StoredArray) -> Iterator[slice]:
    """Yield slices of an array's rows, of about PIECE_BYTES each."""
    row_bytes = math.prod(array.shape[1:]) * array.dtype.itemsize
    step = max(1, PIECE_BYTES // max(1, row_bytes))
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))


def _numpy(array: NDArray[Any] | torch.Tensor) -> NDArray[Any]:
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else array
