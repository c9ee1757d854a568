"""Nothing that has a file of the folder open outlives the process that reaps."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from game_rl.system.reaper import reaping

_TIMEOUT_S = 60.0
_PARENT = """
import subprocess, sys
from pathlib import Path
from game_rl.system.reaper import reaping
folder = Path(sys.argv[1])
hold = "import sys, time; file = open(sys.argv[1] + '/log', 'a'); time.sleep(600)"
nest = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]])"
with open(folder / "own", "w"), reaping(folder):
    commands = [["-c", hold, str(folder)], ["-c", nest, str(folder), hold]]
    for command in commands:
        subprocess.Popen([sys.executable, *command], start_new_session=True)
    print("started", flush=True)
    sys.stdin.readline()
print("ended by itself")
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def holders(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if any(Path(file.path).parent == folder for file in process.open_files()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.parametrize("is_killed", [True, False])
def test_who_has_a_file_of_the_folder_open_ends_with_the_process_and_nobody_else(
    tmp_path: Path, *, is_killed: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with (
        (tmp_path / "folder_of_others").open("w", encoding="utf-8") as other,
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], stdout=other
        ) as bystander,
        subprocess.Popen(
            [sys.executable, "-c", _PARENT, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as parent,
    ):
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        while len(holders(folder)) < 3:  # with the parent, which holds one, too
            assert parent.poll() is None
        family = [one for one in holders(folder) if one.pid != parent.pid]
        if is_killed:
            parent.send_signal(signal.SIGKILL)
        else:
            parent.stdin.write("\n")
            parent.stdin.flush()
            assert parent.stdout.readline() == "ended by itself\n"
        assert parent.wait(_TIMEOUT_S) == (-signal.SIGKILL if is_killed else 0)
        _, left = psutil.wait_procs(family, timeout=_TIMEOUT_S)
        assert left == []
        assert bystander.poll() is None
        bystander.kill()


def test_a_block_that_ends_deletes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with reaping(folder):
        assert folder.exists()
    assert not folder.exists()
