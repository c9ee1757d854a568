import os
from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.errors import GameFileError
from game_rl.games.start_state import StartStateSpec, make_start_state
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_ROM


def begin(folder: Path, name: str = "begin.state") -> bytes:
    emulator = FakeEmulator()
    spec = StartStateSpec(file=Path(name))
    power_on = emulator.save_state()
    return make_start_state(emulator, "begin", spec, rom=FAKE_ROM, power_on=power_on, folder=folder)


def test_a_state_file_is_the_state(tmp_path: Path) -> None:
    emulator = FakeEmulator()
    emulator.tick(30, render=True)
    (tmp_path / "begin.state").write_bytes(emulator.save_state())
    assert begin(tmp_path) == emulator.save_state()


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(4 * 2**30)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Path.exists, "No such file"),
        (Path.mkdir, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (sparse, "larger than any emulator state"),
    ],
    ids=["missing", "folder", "pipe", "device", "link to itself", "4 GiB"],
)
def test_what_is_no_ordinary_file_is_refused_without_reading_it(
    make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    make(tmp_path / "begin.state")
    with pytest.raises(GameFileError, match=says) as caught:
        begin(tmp_path)
    assert "start state begin" in str(caught.value)
    assert str(tmp_path / "begin.state") in str(caught.value)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(GameFileError, match="cannot be read"):
        begin(tmp_path, name)
