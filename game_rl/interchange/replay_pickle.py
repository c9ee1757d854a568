"""Read replay buffers that Stable-Baselines3 pickled, without running their code.

A pickle is a program. This reader knows the few instructions that arrays, spaces and the attributes
of a ReplayBuffer need, and turns them into plain records. If a file asks for anything else, it is
refused with an error that names it. Large arrays stay in the file and are mapped, so memory does
not grow with them.
"""

import pickletools
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError

T = TypeVar("T")

_NAMES = {opcode.code: opcode.name for opcode in pickletools.opcodes}
_MOST_OPCODES = 1_000_000  # a ReplayBuffer has a few hundred
_MOST_INLINE = 1 << 16  # bytes; longer byte strings are not read but stay in the file
_DTYPE = re.compile(r"[<>|=]?[biuf]\d{1,2}|\?")
_NUMPY = ("numpy.core.", "numpy._core.")
_INERT = re.compile(  # classes of attributes that this reader does not use
    r"(gymnasium|gym)\.spaces\.\w+\.(Box|Dict|Discrete|MultiDiscrete|MultiBinary)"
    r"|stable_baselines3\.common\.buffers\.(ReplayBuffer|DictReplayBuffer|NStepReplayBuffer)"
    r"|torch\.device|collections\.OrderedDict|numpy\.random\.[\w.]+"
    r"|numpy\.(ndarray|dtype|bool_?|u?int\d+|float\d+)"
)


@dataclass
class Record:
    """An object of the pickle, as the name of its class and its attributes."""

    name: str
    attributes: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """A range of bytes that was left in the file."""

    offset: int
    length: int


@dataclass
class _Global:
    name: str


@dataclass
class _Dtype:
    dtype: np.dtype[Any]


@dataclass
class PickledArray:
    """An array of the pickle."""

    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    order: str = "C"
    data: bytes | Span = b""

    def load(self, path: Path) -> NDArray[Any]:
        """Return the array, read-only; a large one is mapped from `path`.

        Raises:
            LakeError: the array's bytes do not match its shape.
        """
        length = self.data.length if isinstance(self.data, Span) else len(self.data)
        if self.dtype is None or prod(self.shape) * self.dtype.itemsize != length:
            raise LakeError(f"{path}: an array of shape {self.shape} has {length:,} bytes")
        if isinstance(self.data, Span):
            flat: NDArray[Any] = np.memmap(
                path, self.dtype, "r", self.data.offset, prod(self.shape)
            )
        else:
            flat = np.frombuffer(self.data, self.dtype)
        return flat.reshape(self.shape, order="F" if self.order == "F" else "C")


class _Refused(Exception):  # noqa: N818 - becomes a LakeError with the file's name
    pass


def read_pickle(path: Path) -> object:
    """Read an uncompressed pickle of protocol 3 to 5.

    Raises:
        LakeError: the pickle is cut off, or asks for something that a replay buffer does not need.
    """
    with path.open("rb") as file:
        try:
            return _Machine(file).run()
        except _Refused as error:
            raise LakeError(f"{path}: refused, nothing was run: {error}") from None
        except (IndexError, KeyError, TypeError, ValueError, struct.error, AttributeError) as error:
            raise LakeError(f"{path}: not a complete pickle ({error})") from None


_NEW: dict[str, Callable[[], object]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# layouts (see `struct`) of the number that follows an instruction
_NUMBERS = {"BININT": "<i", "BININT1": "<B", "BININT2": "<H", "BINFLOAT": ">d"}
_TEXTS = {"SHORT_BINUNICODE": "<B", "BINUNICODE": "<I"}
_DATA = {"SHORT_BINBYTES": "<B", "BINBYTES": "<I", "BINBYTES8": "<Q", "BYTEARRAY8": "<Q"}
_PUTS = {"BINPUT": "<B", "LONG_BINPUT": "<I"}
_GETS = {"BINGET": "<B", "LONG_BINGET": "<I"}


class _Machine:
    """The stack machine that runs a pickle's instructions."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._steps: dict[str, Callable[[], None]] = {
            name[4:].upper(): getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }
        for take, layouts in (
            (self._stack.append, _NUMBERS),
            (self._text, _TEXTS),
            (self._data, _DATA),
            (self._put, _PUTS),
            (self._get, _GETS),
        ):
            self._steps |= {name: partial(self._with, take, n) for name, n in layouts.items()}
        self._steps |= {name: partial(self._new, make) for name, make in _NEW.items()}
        self._steps |= {name: partial(self._tuple, n) for name, n in _TUPLES.items()}

    def run(self) -> object:
        for _ in range(_MOST_OPCODES):
            code = self._file.read(1).decode("latin1")
            name = _NAMES.get(code)
            if name is None:
                raise _Refused(f"byte {self._file.tell() - 1:,} is not an instruction of a pickle")
            if name == "STOP":
                return self._stack.pop()
            step = self._steps.get(name)
            if step is None:
                raise _Refused(
                    f"it has the unsupported instruction {name}; save it with protocol 5"
                )
            step()
        raise _Refused(f"it has more than {_MOST_OPCODES:,} instructions")

    # ------------------------------------------------------------------ reading

    def _bytes(self, n: int) -> bytes:
        data = self._file.read(n)
        if len(data) != n:
            raise _Refused("it is cut off")
        return data

    def _number(self, layout: str) -> Any:  # noqa: ANN401
        return struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0]

    def _text(self, n: int) -> None:
        if n > _MOST_INLINE:
            raise _Refused(f"it has a text of {n:,} bytes")
        self._stack.append(self._bytes(n).decode())

    def _data(self, n: int) -> None:
        here = self._file.tell()
        if n > self._size - here:
            raise _Refused("it is cut off")
        if n <= _MOST_INLINE:
            self._stack.append(self._bytes(n))
        else:
            self._stack.append(Span(here, n))
            self._file.seek(n, 1)

    def _popped(self) -> list[Any]:
        """Pop and return the items above the last mark."""
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    # ------------------------------------------------------------------ instructions

    def _with(self, take: Callable[[Any], None], layout: str) -> None:
        """Hand the number that follows the instruction to `take`."""
        take(self._number(layout))

    def _new(self, make: Callable[[], object]) -> None:
        self._stack.append(make())

    def _put(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def _get(self, place: int) -> None:
        self._stack.append(self._memo[place])

    def _tuple(self, n: int) -> None:
        self._stack[-n:] = [tuple(self._stack[-n:])]

    def _op_proto(self) -> None:
        version = self._number("<B")
        if not 3 <= version <= 5:
            raise _Refused(f"protocol {version}; save it again with protocol 5")

    def _op_frame(self) -> None:
        self._bytes(8)

    def _op_long1(self) -> None:
        self._stack.append(int.from_bytes(self._bytes(self._number("<B")), "little", signed=True))

    def _op_mark(self) -> None:
        self._marks.append(len(self._stack))

    def _op_tuple(self) -> None:
        self._stack.append(tuple(self._popped()))

    def _op_append(self) -> None:
        item = self._stack.pop()
        self._list().append(item)

    def _op_appends(self) -> None:
        items = self._popped()
        self._list().extend(items)

    def _op_setitem(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._dict()[key] = value

    def _op_setitems(self) -> None:
        items = self._popped()
        self._dict().update(zip(items[::2], items[1::2], strict=True))

    def _op_memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _op_global(self) -> None:
        module, name = (self._file.readline(256).decode().rstrip("\n") for _ in range(2))
        self._stack.append(_known(f"{module}.{name}"))

    def _op_stack_global(self) -> None:
        name = self._stack.pop()
        module = self._stack.pop()
        self._stack.append(_known(f"{module}.{name}"))

    def _op_reduce(self) -> None:
        arguments = self._stack.pop()
        self._stack.append(_made(self._stack.pop(), arguments))

    def _op_newobj(self) -> None:
        self._op_reduce()

    def _op_build(self) -> None:
        state = self._stack.pop()
        _build(self._stack[-1], state)

    def _list(self) -> list[Any]:
        return _of(list, self._stack[-1])

    def _dict(self) -> dict[Any, Any]:
        target = self._stack[-1]
        return target.attributes if isinstance(target, Record) else _of(dict, target)


def _of(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise _Refused(f"it uses a {type(value).__name__} as a {kind.__name__}")
    return value


def _known(name: str) -> _Global:
    """Check the name of a global and return it; the global itself is never imported."""
    for prefix in _NUMPY:
        if name.removeprefix(prefix) in (
            "multiarray._reconstruct",
            "multiarray.scalar",
            "numeric._frombuffer",
        ):
            return _Global(name.removeprefix(prefix))
    if not _INERT.fullmatch(name):
        raise _Refused(f"it asks for {name}, which a replay buffer does not need")
    return _Global(name)


def _made(what: object, arguments: object) -> object:
    """Return the result of calling `what`, as plain data."""
    name = _of(_Global, what).name
    values = _of(tuple, arguments)
    match name:
        case "multiarray._reconstruct":
            return PickledArray()
        case "numeric._frombuffer":
            data, dtype, shape, order = values
            return PickledArray(_of(_Dtype, dtype).dtype, _shape(shape), order, _data_of(data))
        case "multiarray.scalar":
            return np.frombuffer(_of(bytes, values[1]), _of(_Dtype, values[0]).dtype)[0]
        case "numpy.dtype":
            if not _DTYPE.fullmatch(_of(str, values[0])):
                raise _Refused(f"it has an array of {values[0]!r}; only numbers are supported")
            return _Dtype(np.dtype(values[0]))
    return Record(name)


def _build(target: object, state: object) -> None:
    """Set the state of an object."""
    if isinstance(target, PickledArray):
        _, shape, dtype, is_fortran, data = _of(tuple, state)
        target.dtype = _of(_Dtype, dtype).dtype
        target.shape = _shape(shape)
        target.order = "F" if is_fortran else "C"
        target.data = _data_of(data)
    elif isinstance(target, _Dtype):
        order = _of(tuple, state)[1]
        target.dtype = target.dtype.newbyteorder(order if order in ("<", ">") else "=")
    else:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                _of(Record, target).attributes.update(part)


def _shape(value: object) -> tuple[int, ...]:
    sizes = _of(tuple, value)
    if any(not isinstance(size, int) or size < 0 for size in sizes):
        raise _Refused(f"it has an array of shape {sizes}")
    return sizes


def _data_of(value: object) -> bytes | Span:
    if not isinstance(value, (bytes, Span)):
        raise _Refused("it has an array of objects; only numbers are supported")
    return value
