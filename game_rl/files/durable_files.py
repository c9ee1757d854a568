"""Files and directories that survive a crash: written, synced, linked, replaced in one rename.

And reading and writing at a position of a file.
"""

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel

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


_TEMPORARY = ".tmp"
_TRASH = ".trash"


_READ_WITHIN_S = 2.0


def rename(source: Path, target: Path) -> None:
    """Rename a file, over one that exists, or a directory. A device or a pipe gets its content.

    Windows refuses to while another process has it open. Readers of ours close soon, so there it is
    tried for two seconds.
    """
    if _is_special(target):
        target.write_bytes(source.read_bytes())
        source.unlink()
        return
    end_s = time.monotonic() + _READ_WITHIN_S
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if os.name != "nt" or time.monotonic() > end_s:
                raise
            time.sleep(0.01)
        else:
            return


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one rename, so that readers see the old or the new file.

    A device, such as /dev/null, or a pipe is written to instead: a rename would replace it.
    """
    data = content.encode() if isinstance(content, str) else content
    if _is_special(path):
        path.write_bytes(data)
        return
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    try:
        write_synced(temporary, data)
        rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def write_saved(path: Path, model: BaseModel) -> None:
    """Write a model as JSON in one rename; its folder is made if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, model.model_dump_json(indent=2) + "\n")


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and sync it to the disk."""
    with synced_file(path) as file:
        file.write(content)


@contextmanager
def synced_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, and sync it to the disk when the block ends."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory, which becomes `path` when the block ends.

    The caller fills it with synced files. If the block raises, nothing is left. The parent of
    `path` must exist.

    Raises:
        FileExistsError: `path` exists already.
    """
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(path))
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        sync_directory(temporary)
        rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_directory(path.parent)


def link_file(source: Path, target: Path) -> None:
    """Hard-link a file that never changes, or make a synced copy if linking fails."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        with source.open("rb") as whole, synced_file(target) as copy:
            shutil.copyfileobj(whole, copy)


def remove_directory(path: Path) -> None:
    """Rename `path`, then delete it, so that readers never see a part of it."""
    trash = path.with_name(f".{path.name}{_TRASH}")
    shutil.rmtree(trash, ignore_errors=True)
    rename(path, trash)
    shutil.rmtree(trash)


@contextmanager
def replaced_directory(path: Path) -> Iterator[None]:
    """Move `path` away, so that the block can make it anew; restore it if the block raises."""
    if not path.exists():
        yield
        return
    trash = path.with_name(f".{path.name}{_TRASH}")
    shutil.rmtree(trash, ignore_errors=True)
    rename(path, trash)
    try:
        yield
    except BaseException:
        rename(trash, path)
        raise
    shutil.rmtree(trash)


_FOR_SYNC = os.O_RDWR if os.name == "nt" else os.O_RDONLY  # Windows syncs only what it may write


def sync_file(path: Path) -> None:
    """Sync a file that is on the disk already."""
    descriptor = os.open(path, _FOR_SYNC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable; a no-op where directories cannot be opened (Windows)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(root: Path) -> None:
    """Delete what functions of this module left below `root` when they were killed."""
    for path in list(root.rglob(".*")):
        if path.name.endswith((_TEMPORARY, _TRASH)) and path.exists():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def folder_bytes(path: Path) -> int:
    """Return the size of the files in a folder; 0 if it is gone."""
    try:
        return sum(file.stat().st_size for file in path.iterdir())
    except OSError:
        return 0
