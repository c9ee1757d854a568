"""A population of real processes whose disk fills up, continued as its own message says."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.full_disk import SmallDisk, small_disk
from tests.faults.population_faults import (
    HANG_S,
    Controller,
    hashes_of,
    records_of,
    write_population,
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    try:
        with small_disk(tmp_path / "disk") as disk:
            yield disk
    except PermissionError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same population on a disk with room."""
    folder = tmp_path_factory.mktemp("whole")
    write_population(folder, folder / "population")
    assert Controller(folder / "population").process.wait(HANG_S) == 0
    return folder / "population"


# what is there when the disk fills up: it stands for the writes that come next
@pytest.mark.parametrize(
    "moment",
    [
        "members/00/checkpoints/*",
        pytest.param("experiment.yaml", marks=pytest.mark.soak),
        pytest.param("members/02/config.yaml", marks=pytest.mark.soak),
        pytest.param("generations/0001/00.json", marks=pytest.mark.soak),
        pytest.param("generations/0001/record.json", marks=pytest.mark.soak),
        pytest.param("members/*.g0001", marks=pytest.mark.soak),
        pytest.param("generations/0002/02.log", marks=pytest.mark.soak),
        pytest.param("validation/*", marks=pytest.mark.soak),
    ],
)
@pytest.mark.slow
def test_a_population_whose_disk_was_full_goes_on_as_its_message_says(
    tmp_path: Path, disk: SmallDisk, whole: Path, moment: str
) -> None:
    folder = tmp_path / "population"
    (disk.path / "population").mkdir()
    folder.symlink_to(disk.path / "population")  # its log is on another disk
    write_population(tmp_path, folder)
    controller = Controller(folder)
    while not list(folder.glob(moment)):
        assert controller.run_for(0.05), controller.output
    disk.fill()
    assert controller.process.wait(HANG_S) == 1, controller.output
    assert "Traceback" not in controller.output
    disk.make_room()
    way_on = r"continue with game-rl train (--resume \S+?)[;.]?(?= |$)"
    (command,) = set(re.findall(way_on, controller.output))
    assert shlex.split(command)[1] == str(folder)
    train = [sys.executable, "-m", "game_rl", "train", *shlex.split(command)]
    done = subprocess.run(
        train, capture_output=True, text=True, timeout=HANG_S, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert records_of(folder) == records_of(whole)
    assert hashes_of(folder) == hashes_of(whole)
