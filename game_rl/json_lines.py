"""Append-only files with one JSON object a line.

A crash or a full disk tears at most the last line. The torn line stays in the file, and the next
one begins on a line of its own. Readers skip lines that are unfinished or that they do not know.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

from pydantic import TypeAdapter, ValidationError

_Kind = TypeVar("_Kind")


class JsonLines:
    """A file of JSON lines, open for appending. Close it, or use it as a context manager.

    Raises:
        OSError: from any method, if the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._is_torn = _is_torn(path)

    def append(self, line: str) -> None:
        """Append a line. It survives this process, but survives the machine only after `sync`."""
        data = line.encode() + b"\n"
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        while data:
            data = data[self._file.write(data) :]
        self._file.flush()
        self._is_torn = False

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
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
    """Yield the offset and the bytes of each finished line; nothing if there is no file."""
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
    """Parse a line; None if it is torn or was written by another version."""
    try:
        return kind.validate_python(json.loads(line))
    except (ValidationError, ValueError):
        return None


def _is_torn(path: Path) -> bool:
    """Whether the last line is unfinished."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"
