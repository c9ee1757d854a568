"""Nothing that was started under the variable outlives the process that reaps."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from game_rl.executors.reaper import REAPED_VARIABLE, reaping

_TIMEOUT_S = 60.0
_PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from game_rl.executors.reaper import REAPED_VARIABLE, reaping
folder = Path(sys.argv[1])
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
nest = [sys.executable, "-c", f"import subprocess; subprocess.run({sleep!r})"]
with reaping(folder):
    os.environ[REAPED_VARIABLE] = str(folder)
    processes = [subprocess.Popen(c, start_new_session=True) for c in (sleep, nest)]
    print(*(p.pid for p in processes), flush=True)
    sys.stdin.readline()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_has_the_variable_ends_with_the_process_and_nothing_else(
    tmp_path: Path, *, is_killed: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "socket").touch()
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={**os.environ, REAPED_VARIABLE: str(tmp_path / "another")},
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    family = [psutil.Process(pid) for pid in pids]
    reaper = [p for p in psutil.Process(parent.pid).children() if p not in family]
    if is_killed:
        parent.send_signal(signal.SIGKILL)
    else:
        parent.stdin.write("\n")
        parent.stdin.flush()
    parent.wait(_TIMEOUT_S)
    _, left = psutil.wait_procs([*family, *reaper], timeout=_TIMEOUT_S)
    assert left == []
    assert not folder.exists()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    parent.stdin.close()
    parent.stdout.close()


def test_a_block_that_ends_deletes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with reaping(folder):
        assert folder.exists()
    assert not folder.exists()
