"""Transitions of any fields, each row of their tables stored once.

An observation is often a window over rows that the one before had too: a stack of frames, the last
504 minutes of some prices. What is stored then is the rows, and where each window begins.

    fields = {
        "state": WindowOf("prices", rows=504),       # float32 [504, 108, 9]
        "next_state": NextOf("state"),
        "action": Value((108, 2), np.float32),
        "reward": Value((), np.float32),
    }

takes 4.8 kB a transition where the arrays themselves take 3.92 MB. A game's observation is

    "frame": Frame(packing), "obs": StackOf("frame", 4), "next_obs": NextOf("obs")
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from game_rl.envs.packing import FramePacking

Array = NDArray[Any]


@dataclass(frozen=True)
class Value:
    """An array that shares nothing."""

    shape: tuple[int, ...] = ()
    dtype: DTypeLike = np.float32


@dataclass(frozen=True)
class Frame:
    """The frames of a table, packed; a table and no field of its own."""

    packing: FramePacking


@dataclass(frozen=True)
class StackOf:
    """uint8 [n * C, H, W]: n frames of a `Frame` table, zeros before an episode's first."""

    frame: str
    n: int


@dataclass(frozen=True)
class WindowOf:
    """[rows, *row shape]: consecutive rows of a table, of the dtype and shape that come first."""

    table: str
    rows: int


@dataclass(frozen=True)
class NextOf:
    """Another field one timestep later."""

    field: str


Field = Value | Frame | StackOf | WindowOf | NextOf


class RowTable:
    """Rows that only grow in number; finds a window that is there, or adds what is not."""

    _MOST_CANDIDATES = 16  # rows that are equal, such as blank ones, are not all tried

    def __init__(self) -> None:
        self._rows: NDArray[np.void] = np.empty(0, "V1")
        self._n = 0
        self._last = 0
        self._places: dict[int, list[int]] = {}  # by the hash of a row

    @property
    def nbytes(self) -> int:
        """Of the rows, without what is reserved for more and the index that finds them."""
        return self._n * self._rows.itemsize

    def place(self, window: NDArray[np.void]) -> int:
        """Number of the first row of these rows, bytes [n]; they are there afterwards."""
        known = self._places.get(hash(window[0].tobytes()), [])
        for start in (self._last + 1, self._last, *known):
            shared = min(len(window), self._n - start)
            if shared > 0 and np.array_equal(self._rows[start : start + shared], window[:shared]):
                self._add(window[shared:])
                break
        else:
            start = self._n
            self._add(window)
        self._last = start
        return start

    def rows(self, numbers: Array) -> NDArray[np.void]:
        return self._rows[numbers]

    def _add(self, rows: NDArray[np.void]) -> None:
        end = self._n + len(rows)
        if end > len(self._rows):
            grown = np.empty(max(end, len(self._rows) * 3 // 2), rows.dtype)
            grown[: self._n] = self._rows[: self._n]
            self._rows = grown
        self._rows[self._n : end] = rows
        for number in range(self._n, end):
            same = self._places.setdefault(hash(self._rows[number].tobytes()), [])
            if len(same) < self._MOST_CANDIDATES:
                same.append(number)
        self._n = end


class FieldStore:
    """Transitions in the order in which they were added, read back bit for bit.

    Each stream (an env) has tables of its own, since a window is found by the rows that follow
    each other in it.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = dict(fields)
        self._tables: dict[tuple[str, int], RowTable] = {}
        self._shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        self._columns: dict[str, list[Array]] = {
            name: [] for name, field in fields.items() if not isinstance(field, Frame)
        }
        self._streams: list[int] = []
        for name in self._columns:
            self._table_name(name)  # refuses what names nothing

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def nbytes(self) -> int:
        """Of rows and columns, as they would be on disk."""
        columns = sum(value.nbytes for column in self._columns.values() for value in column)
        return columns + sum(table.nbytes for table in self._tables.values())

    def add(self, values: Mapping[str, Array], *, stream: int = 0) -> None:
        """One transition: a value for each field but `Frame`.

        Raises:
            ValueError: a value has another shape or dtype than its field.
        """
        encoded = {name: self._rows_of(name, np.asarray(values[name])) for name in self._columns}
        for name, value in encoded.items():
            self._columns[name].append(self._placed(name, value, stream))
        self._streams.append(stream)

    def take(self, indices: Array) -> dict[str, Array]:
        """The transitions of these numbers, [len(indices), ...] for each field."""
        return {
            name: np.stack([self._value(name, int(index)) for index in indices])
            for name in self._columns
        }

    # ------------------------------------------------------------------ one field

    def _source(self, name: str) -> Field:
        """What a NextOf repeats."""
        field = self._fields[name]
        while isinstance(field, NextOf):
            if field.field not in self._fields:
                raise ValueError(f"{name} is the next of {field.field}, which is no field")
            field = self._fields[field.field]
        return field

    def _table_name(self, name: str) -> str | None:
        field = self._source(name)
        if isinstance(field, WindowOf):
            return field.table
        if isinstance(field, StackOf):
            if not isinstance(self._fields.get(field.frame), Frame):
                raise ValueError(f"{name} is a stack of {field.frame}, which is no Frame")
            return field.frame
        return None

    def _rows_of(self, name: str, value: Array) -> Array:
        """Checked; the rows of a window as bytes [n]."""
        field = self._source(name)
        match field:
            case Value():
                self._check(name, value, field.shape, np.dtype(field.dtype))
                return value.copy()
            case StackOf():
                packing = self._packing(field)
                channels, height, width = packing.shape
                shape = (field.n * channels, height, width)
                self._check(name, value, shape, np.dtype(np.uint8))
                return _as_rows(packing.pack(value.reshape(field.n, *packing.shape)))
            case WindowOf():
                first = (field.rows, *value.shape[1:]), value.dtype
                self._check(name, value, *self._shapes.setdefault(field.table, first))
                return _as_rows(value)
        raise AssertionError(field)

    def _placed(self, name: str, rows: Array, stream: int) -> Array:
        """What is kept of a value: itself, or the number of its first row and of blank frames."""
        table = self._table_name(name)
        if table is None:
            return rows
        blank = 0
        if isinstance(self._source(name), StackOf):
            is_blank = rows == np.zeros((), rows.dtype)
            blank = int(np.argmin(is_blank)) if not is_blank.all() else len(rows) - 1
        start = self._tables.setdefault((table, stream), RowTable()).place(rows[blank:])
        return np.array(start * 256 + blank)

    def _value(self, name: str, index: int) -> Array:
        kept = self._columns[name][index]
        table = self._table_name(name)
        if table is None:
            return kept
        field = self._source(name)
        start, blank = divmod(int(kept), 256)
        n = field.n if isinstance(field, StackOf) else getattr(field, "rows", 0)
        rows = self._tables[table, self._streams[index]].rows(np.arange(start, start + n - blank))
        if isinstance(field, StackOf):
            packing = self._packing(field)
            frames = np.zeros((field.n, *packing.shape), np.uint8)
            packed = rows.view(np.uint8).reshape(len(rows), packing.nbytes)
            frames[blank:] = packing.unpack(packed)
            return frames.reshape(-1, *packing.shape[1:])
        shape, dtype = self._shapes[table]
        return rows.view(dtype).reshape(shape)

    def _packing(self, field: StackOf) -> FramePacking:
        frame = self._fields[field.frame]
        assert isinstance(frame, Frame)
        return frame.packing

    @staticmethod
    def _check(name: str, value: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if value.shape != shape or value.dtype != dtype:
            raise ValueError(f"{name} is {value.dtype} {value.shape}, not {dtype} {shape}")


def _as_rows(rows: Array) -> NDArray[np.void]:
    """[n, ...] as [n] bytes, so that rows are compared bit for bit, NaNs too."""
    size = prod(rows.shape[1:]) * rows.itemsize
    flat: NDArray[np.void] = np.ascontiguousarray(rows).reshape(-1).view(f"V{size}")
    return flat
