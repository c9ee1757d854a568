"""An array in a file whose large elements are read one at a time."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError

_LEAST_BYTES = 1 << 16  # smaller elements are views of the mapped file instead of reads


class FileArray:
    """An array [size, n_envs, ...] whose `array[row, env]` is read from the file on each access.

    The pages of a mapped file would stay in the process's memory, and the kernel may make them
    2 MiB large. An element that is read takes only its own size, while it is used.
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
