"""Files of JSON lines that grow: appending whole lines, and reading those that are finished."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

from pydantic import TypeAdapter

from game_rl.files.saved import parse_json

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


def located_lines(path: Path, *, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each finished line; nothing if there is no file.

    Args:
        start: offset of the first line to read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    offset = start
    with file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield offset, line
            offset += len(line)


def parsed(kind: TypeAdapter[_Kind], line: bytes | str) -> _Kind | None:
    """Parse a line; None if it is torn or was written by another version."""
    try:
        return kind.validate_python(parse_json(line))
    except ValueError:  # pydantic's error is one
        return None


def _is_torn(path: Path) -> bool:
    """Whether the last line is unfinished."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"
