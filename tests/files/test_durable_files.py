"""Files that are written in one rename."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.files.durable_files import rename, write_atomic


def _write(path: Path) -> None:
    write_atomic(path, b"content")


def _rename(path: Path) -> None:
    written = path.with_name("written")
    written.write_bytes(b"content")
    rename(written, path)


@pytest.mark.parametrize("write", [_write, _rename])
def test_a_pipe_gets_the_content_and_stays_a_pipe(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("write", [_write, _rename])
def test_a_file_that_exists_is_replaced(tmp_path: Path, write: Callable[[Path], None]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"the old one, which is longer")
    write(file)
    assert file.read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
