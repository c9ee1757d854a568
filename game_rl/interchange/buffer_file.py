"""Write the pickle of a replay buffer without holding its arrays in memory."""

import os
import pickle
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from game_rl.buffers.layout import ArrayLayout

_PROTOCOL_3, _PROTOCOL_4 = b"\x80\x03", b"\x80\x04"
_MARKER_BYTES = 32
_BYTES = b"C" + bytes([_MARKER_BYTES])  # instruction of protocol 3, with the length in one byte
_LONG_BYTES = b"\x8e"  # instruction of protocol 4, with the length in eight bytes


class BufferFile:
    """The file that `pickle.dump(buffer)` would write, with arrays that are filled part by part.

    The pickle is made with a marker in place of each array's bytes. Protocol 3 has no frames around
    its instructions, so bytes of any length can replace a marker. As their length needs an
    instruction of protocol 4, the file declares protocol 4.

    Args:
        path: new file to write.
        buffer: buffer without its arrays.
        arrays: arrays that become attributes of the buffer; zeros where `put` writes nothing.
    """

    def __init__(self, path: Path, buffer: ReplayBuffer, arrays: Iterable[ArrayLayout]) -> None:
        places = {layout.name: _ArrayInFile(layout) for layout in arrays}
        for name, place in places.items():
            setattr(buffer, name, place)
        rest = pickle.dumps(buffer, protocol=3).replace(_PROTOCOL_3, _PROTOCOL_4, 1)
        self._layouts = {name: place.layout for name, place in places.items()}
        self._offsets: dict[str, int] = {}
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        end = 0
        for name, place in sorted(places.items(), key=lambda item: rest.index(item[1].marker)):
            before, rest = rest.split(_BYTES + place.marker)
            nbytes = place.layout.nbytes
            self._write(before + _LONG_BYTES + nbytes.to_bytes(8, "little"), end)
            self._offsets[name] = end + len(before) + 9
            end = self._offsets[name] + nbytes
        self._write(rest, end)

    def put(self, name: str, values: NDArray[Any], *, place: int) -> None:
        """Write values into an array, from its flat element number `place` on."""
        dtype = np.dtype(self._layouts[name].dtype)
        data = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8)
        self._write(data, self._offsets[name] + place * dtype.itemsize)

    def _write(self, data: Any, offset: int) -> None:  # noqa: ANN401 - bytes or an array of them
        left = memoryview(data)
        while left:
            n = os.pwrite(self._file, left, offset)
            left, offset = left[n:], offset + n

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)


class Call:
    """A stand-in for a large object: it is pickled as a call that makes the object."""

    def __init__(self, function: Any, *arguments: Any) -> None:  # noqa: ANN401
        self._call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call


class _ArrayInFile:
    """A stand-in for an array: it is pickled like the array, with a marker for its bytes."""

    def __init__(self, layout: ArrayLayout) -> None:
        self.layout = layout
        self.marker = secrets.token_bytes(_MARKER_BYTES)

    def __reduce__(self) -> tuple[Any, ...]:
        made: Any = np.empty(0, self.layout.dtype).__reduce__()
        function, arguments, (version, _, dtype, is_fortran, _) = made
        return function, arguments, (version, self.layout.shape, dtype, is_fortran, self.marker)
