"""What a process leaves is deleted by itself, or by the next one."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

from game_rl.executors.attempt import private_folder

_WAITING = """
import sys, time
from pathlib import Path
from game_rl.executors.attempt import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "sockets").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_its_owners_alone_and_ends_with_the_block(tmp_path: Path) -> None:
    with private_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").touch()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_living_processes_stay_and_those_of_killed_ones_go(tmp_path: Path) -> None:
    (tmp_path / "game_rl-of_somebody").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _WAITING, str(tmp_path)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    theirs = Path(process.stdout.readline().strip())
    with private_folder(tmp_path):
        assert (theirs / "sockets").is_dir()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with private_folder(tmp_path):
        assert not theirs.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["game_rl-of_somebody"]
