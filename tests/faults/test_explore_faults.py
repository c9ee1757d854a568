"""An exploration that is killed, or whose disk fills up, loses at most a round."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from game_rl.explore.archive import Archive
from game_rl.explore.explore_dir import ExploreDir
from tests.faults.explore_faults import kill_trials
from tests.faults.full_disk import SmallDisk, small_disk

_HANG_S = 300


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    try:
        with small_disk(tmp_path / "disk") as disk:
            yield disk
    except PermissionError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_an_exploration_that_is_killed_ends_as_one_that_was_not() -> None:
    assert not any(kill_trials(6, seed=1))


@pytest.mark.slow
def test_an_exploration_whose_disk_was_full_goes_on_as_its_message_says(
    tmp_path: Path, disk: SmallDisk
) -> None:
    whole = _explore("beacon", "--output", str(tmp_path / "whole"), "--timesteps", "40000")
    assert whole.returncode == 0, whole.stderr
    folder = ExploreDir(disk.path / "explored")
    word = ["beacon", "--output", str(folder.root), "--states", "20MiB"]
    with subprocess.Popen(
        [sys.executable, "-m", "game_rl", "explore", *word],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        while Archive.read(folder.archive, 2**30, has_states=False).rounds < 2:
            assert process.poll() is None
        disk.fill()
        output, _ = process.communicate(timeout=_HANG_S)
    assert process.returncode == 1
    assert "Traceback" not in output
    assert "all rounds up to this one are saved" in output
    disk.make_room()
    rounds = Archive.read(folder.archive, 2**30).rounds
    (command,) = re.findall(r"continue with game-rl explore (--resume .*)", output)
    done = _explore(*shlex.split(command), "--timesteps", "10")
    assert done.returncode == 0, done.stderr
    lines = folder.archive.read_bytes().splitlines()
    assert len(lines) == rounds + 2  # the beginning, and one more round
    expected = ExploreDir(tmp_path / "whole").archive.read_bytes().splitlines()
    shared = min(len(lines), len(expected))
    assert shared >= 4
    assert lines[:shared] == expected[:shared]


def _explore(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "game_rl", "explore", *words],
        capture_output=True,
        timeout=_HANG_S,
        check=False,
        encoding="utf-8",
    )
