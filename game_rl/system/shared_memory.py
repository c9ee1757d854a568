"""Memory that several processes map, and that is gone when they are."""

import mmap
import os
import weakref
from contextlib import suppress
from multiprocessing import shared_memory

import numpy as np
from numpy.typing import NDArray

from game_rl.system.processes import changed_environment, python_variables


class NamelessMemory:
    """Memory without a path, which another process maps by its file descriptor.

    `kill -9` leaves nothing behind. Unlike /dev/shm, a memfd is not limited to the 64 MB that
    containers have by default.

    Args:
        descriptor: the one that another process sent, or None for new memory.
    """

    name = None

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = os.memfd_create("game_rl") if descriptor is None else descriptor

    def mapped(self, n_bytes: int) -> mmap.mmap:
        """Return the memory, which is enlarged if necessary."""
        if os.fstat(self.descriptor).st_size < n_bytes:
            os.ftruncate(self.descriptor, n_bytes)
        return mmap.mmap(self.descriptor, n_bytes)

    def close(self) -> None:
        """Close the descriptor; what is mapped stays so as long as it is used."""
        os.close(self.descriptor)


class NamedMemory:
    """Memory with a name, by which another process maps it; for systems without `memfd_create`.

    If all processes are killed, Python's resource tracker deletes it, and on Windows the system.

    Args:
        name: the one that another process sent, or None for new memory.
    """

    descriptor = None

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._is_ours = name is None
        self._memory: _Memory | None = None

    def mapped(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return the memory, which may be larger; the first call makes it.

        It stays mapped as long as what is returned, or an array in it, is used.
        """
        while _unused:
            _unused.pop().close()
        if self._memory is None:
            with changed_environment(python_variables()):  # Python's tracker may be started
                self._memory = _Memory(self.name, create=self._is_ours, size=n_bytes)
            self.name = self._memory.name
        assert self._memory.buf is not None
        mapped = np.frombuffer(self._memory.buf, np.uint8)
        weakref.finalize(mapped, _unused.append, self._memory).atexit = False
        return mapped

    def close(self) -> None:
        """Delete the name if it is ours; what is mapped stays so as long as it is used."""
        if self._is_ours and self._memory is not None:
            with suppress(FileNotFoundError):  # somebody has cleared /dev/shm
                self._memory.unlink()
        self._memory = None


class _Memory(shared_memory.SharedMemory):
    """Memory that must not be closed before its arrays are gone: NumPy does not prevent it."""

    def close(self) -> None:
        with suppress(BufferError):  # at the interpreter's exit, which an array may outlast
            super().close()


_unused: list[_Memory] = []  # it cannot be closed while its last array is being deleted
SharedMemory = NamelessMemory | NamedMemory


def new_shared_memory() -> SharedMemory:
    return NamelessMemory() if hasattr(os, "memfd_create") else NamedMemory()
