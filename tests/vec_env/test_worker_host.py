"""Whether a process can start workers, and what it is told if it cannot."""

import multiprocessing
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.errors import WorkerError, system_fault
from game_rl.vec_env.worker_pool import check_host

ROOT = Path(__file__).parents[2]
UNGUARDED = """
from game_rl.vec_env.worker_pool import WorkerPool
WorkerPool([range(1)], timeout_s=60, start_method="forkserver").close()
"""


def test_a_script_without_a_guard_is_told_that_it_needs_one(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last == (
        "game_rl.errors.WorkerError: worker 0 (env 0) exited with code 1 before it could start: it "
        f"imports {script}, which does everything again; put what the script does under "
        '`if __name__ == "__main__":`'
    )


def test_a_daemonic_process_is_told_what_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(multiprocessing.current_process())["_config"], "daemon", True)
    with pytest.raises(WorkerError, match=r"daemonic, as those of multiprocessing\.Pool are"):
        check_host(1)


def test_too_few_file_handles_are_told_before_a_worker_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (24, 24))
    with pytest.raises(WorkerError, match=r"may open 24 files at once.*ulimit -n"):
        check_host(1)


def test_a_soft_limit_of_file_handles_is_raised_as_far_as_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (24, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    check_host(10)
    ((soft, hard),) = set_to
    assert 100 < soft < hard == 4096


def test_a_fault_of_too_many_open_files_names_the_way_out() -> None:
    assert "ulimit -n" in system_fault(OSError(24, "Too many open files"))
