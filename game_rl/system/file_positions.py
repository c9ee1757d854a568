"""Reading and writing at a position of a file."""

import os
import threading
from collections.abc import Callable

BINARY: int = getattr(os, "O_BINARY", 0)
"""Flag of `os.open`: Windows would otherwise change line ends."""
_moving = threading.Lock()


def read_by_seeking(file: int, n_bytes: int, offset: int) -> bytes:
    """Read like `os.pread`, which Windows lacks, but move the file's position."""
    parts = []
    with _moving:
        os.lseek(file, offset, os.SEEK_SET)
        while n_bytes and (part := os.read(file, n_bytes)):
            parts.append(part)
            n_bytes -= len(part)
    return b"".join(parts)


def write_by_seeking(file: int, data: bytes | memoryview, offset: int) -> int:
    """Write like `os.pwrite`, which Windows lacks, but move the file's position."""
    with _moving:
        os.lseek(file, offset, os.SEEK_SET)
        return os.write(file, data)


read_at: Callable[[int, int, int], bytes] = getattr(os, "pread", read_by_seeking)
"""Read up to so many bytes from a position: `read_at(file, n_bytes, offset)`."""
write_at: Callable[[int, bytes | memoryview, int], int] = getattr(os, "pwrite", write_by_seeking)
"""Write at a position and return the number of bytes: `write_at(file, data, offset)`."""
