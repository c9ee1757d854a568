"""A child that ends with its parent and is asked to stop through its standard input."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from game_rl.system.child_process import LeashedProcess
from game_rl.system.processes import KILLED
from tests.experiments.executors.job_program import MODULE, asking

_WITHIN_S = 120.0


def start(tmp_path: Path, *words: str) -> LeashedProcess:
    with (tmp_path / "log").open("ab") as log:
        request = str(asking(tmp_path, *words))
        return LeashedProcess(MODULE, [request], os.environ, log.fileno())


def wait_for_line(tmp_path: Path, line: str) -> list[str]:
    deadline = time.monotonic() + _WITHIN_S
    while line not in (lines := (tmp_path / "log").read_text(encoding="utf-8").splitlines()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return lines


def end_of(process: LeashedProcess) -> int:
    deadline = time.monotonic() + _WITHIN_S
    while not process.has_ended():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process.kill_and_wait()


@pytest.mark.parametrize(("words", "code"), [(("end", "0"), 0), (("end", "3"), 3), (("raise",), 1)])
def test_it_ends_with_its_own_code(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    assert end_of(start(tmp_path, *words)) == code


def test_it_saves_when_it_is_asked_to_even_while_it_waits(tmp_path: Path) -> None:
    process = start(tmp_path, "save")
    wait_for_line(tmp_path, "ready")
    assert not process.has_ended()
    process.ask_to_stop()
    assert end_of(process) == 143
    process.ask_to_stop()  # which is too late, and harmless
    wait_for_line(tmp_path, "saved")


def test_its_children_are_killed_with_it(tmp_path: Path) -> None:
    process = start(tmp_path, "family")
    child = psutil.Process(int(wait_for_line(tmp_path, "ready")[0]))
    assert process.kill_and_wait() == KILLED
    child.wait(_WITHIN_S)


_PARENT = """\
import os, sys, time
from game_rl.system.child_process import LeashedProcess
process = LeashedProcess(sys.argv[1], [sys.argv[2]], os.environ, 1)
print(process.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PARENT, MODULE, str(asking(tmp_path, "deaf"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        child.wait(_WITHIN_S)
