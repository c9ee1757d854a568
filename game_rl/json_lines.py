"""Files of one JSON object a line that are only appended to, and outlive the processes that write.

A crash or a full disk tears at most the last line. It stays where it is; the next one begins on a
line of its own, and readers leave out what has no end or what they do not know.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

from pydantic import TypeAdapter, ValidationError

_Kind = TypeVar("_Kind")


class JsonLines:
    """One such file, open for appending; close it, or use it as a context manager.

    Raises:
        OSError: everywhere, where the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._is_torn = _is_torn(path)

    def append(self, line: str) -> None:
        """Hand it to the kernel: it outlives this process, and the machine only after `sync`."""
        data = line.encode() + b"\n"
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        while data:
            data = data[self._file.write(data) :]
        self._file.flush()
        self._is_torn = False

    def sync(self) -> None:
        """All lines are on the disk when this returns."""
        os.fsync(self._file.fileno())

    def n_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def located_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that has an end, with the byte at which it begins; none if there is no file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    offset = 0
    with file:
        for line in file:
            if line.endswith(b"\n"):
                yield offset, line
            offset += len(line)


def parsed(kind: TypeAdapter[_Kind], line: bytes | str) -> _Kind | None:
    """None if the line is torn, or of another version."""
    try:
        return kind.validate_python(json.loads(line))
    except (ValidationError, ValueError):
        return None


def _is_torn(path: Path) -> bool:
    """Whether the last line has no end."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"
