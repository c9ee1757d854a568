"""Large elements of an array in a file, read one at a time."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError

_LEAST_BYTES = 1 << 16  # of an element that is read; smaller ones are views of the mapped file


class FileArray:
    """[size, n_envs, ...], of which `array[row, env]` is in memory as long as it is used.

    A page of a mapped file stays in the process's memory, as 2 MiB if the kernel likes; what is
    read takes what it is.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: tuple[int, int]) -> NDArray[Any]:
        view: NDArray[Any] = self._array[place]
        array = self._array
        is_in_order = isinstance(array, np.memmap) and array.flags.c_contiguous
        if view.nbytes < _LEAST_BYTES or not is_in_order:
            return view
        assert isinstance(array, np.memmap)
        values = np.empty(view.shape, view.dtype)
        number = place[0] * self.shape[1] + place[1]
        left = memoryview(values.data).cast("B")
        with Path(str(array.filename)).open("rb", buffering=0) as file:
            file.seek(array.offset + number * view.nbytes)
            while left:
                n = file.readinto(left)
                if not n:
                    raise LakeError(f"{file.name} became shorter while it was read")
                left = left[n:]
        return values
