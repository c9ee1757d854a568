"""Processes that a fork server forks, beside those of fresh interpreters."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from game_rl.experiments.executors.executor import Job, JobProcess, LocalExecutor, job_environment
from game_rl.system.fork_server import ForkServer, ForkServerError
from tests.experiments.executors.job_program import MODULE, asking

_WITHIN_S = 120.0


def job(tmp_path: Path, *arguments: str) -> Job:
    return Job("x", asking(tmp_path, *arguments), tmp_path / "log", module=MODULE)


@pytest.fixture(scope="module")
def shared() -> Iterator[ForkServer]:
    server = ForkServer(
        ["game_rl.experiments.jobs.member_jobs"], job_environment(Job("x", Path("x"), Path("log")))
    )
    yield server
    server.close()


def end_of(process: JobProcess) -> int:
    code = process.wait(_WITHIN_S)
    assert code is not None
    return code


def lines_of(tmp_path: Path, count: int) -> list[str]:
    """What a job has printed, once it is so many whole lines."""
    deadline = time.monotonic() + _WITHIN_S
    while (printed := (tmp_path / "log").read_text(encoding="utf-8")).count("\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return printed.splitlines()


def test_a_forked_process_is_like_one_of_a_fresh_interpreter(
    shared: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SET_AFTER_THE_FORK_SERVER", "1")
    told = []
    for server in (None, shared):
        order = job(tmp_path, "process")
        assert end_of(JobProcess(order, server=server)) == 0
        told.append(json.loads((tmp_path / "log").read_text(encoding="utf-8").splitlines()[-1]))
    assert told[0] == told[1]
    assert told[1]["environment"]["SET_AFTER_THE_FORK_SERVER"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("what", [("end", "0"), ("end", "3"), ("end", "nonsense"), ("raise",)])
def test_it_ends_as_one_of_a_fresh_interpreter(
    shared: ForkServer, tmp_path: Path, what: tuple[str, ...]
) -> None:
    ends = []
    for server in (None, shared):
        process = JobProcess(job(tmp_path, *what), server=server)
        ends.append((end_of(process), process.tail().splitlines()[-1:]))
        (tmp_path / "log").unlink()
    assert ends[0] == ends[1]


def test_what_was_loaded_is_there(shared: ForkServer, tmp_path: Path) -> None:
    process = JobProcess(job(tmp_path, "deaf"), server=shared)
    lines_of(tmp_path, 1)
    maps = psutil.Process(process.pid).memory_maps()
    process.kill()
    assert [m for m in maps if "libtorch" in m.path]


def test_it_saves_when_it_is_asked_to(shared: ForkServer, tmp_path: Path) -> None:
    process = JobProcess(job(tmp_path, "save"), server=shared)
    lines_of(tmp_path, 1)
    process.ask_to_stop()
    assert end_of(process) == 143
    process.ask_to_stop()  # which is too late, and harmless
    assert lines_of(tmp_path, 2) == ["ready", "saved"]


@pytest.mark.slow
def test_its_group_ends_with_it(shared: ForkServer, tmp_path: Path) -> None:
    process = JobProcess(job(tmp_path, "family"), server=shared)
    child = psutil.Process(int(lines_of(tmp_path, 2)[0]))
    os.kill(process.pid, signal.SIGKILL)
    assert end_of(process) == -signal.SIGKILL
    child.wait(_WITHIN_S)


@pytest.mark.slow
def test_signals_for_the_controllers_group_do_not_end_it(
    shared: ForkServer, tmp_path: Path
) -> None:
    process = JobProcess(job(tmp_path, "save"), server=shared)
    lines_of(tmp_path, 1)
    parent = psutil.Process(process.pid).ppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(parent, number)
    assert end_of(JobProcess(job(tmp_path, "end", "5"), server=shared)) == 5
    assert process.code() is None
    process.kill()


@pytest.mark.slow
def test_jobs_end_with_a_fork_server_that_is_killed_and_the_next_ones_are_carried_out(
    tmp_path: Path,
) -> None:
    others = set(psutil.Process().children())
    with LocalExecutor(1) as executor:
        executor.start(job(tmp_path, "deaf"))
        lines_of(tmp_path, 1)
        (server,) = set(psutil.Process().children()) - others
        (child,) = server.children()
        server.kill()
        (ended,) = executor.wait(_WITHIN_S)
        assert ended.code == -signal.SIGKILL
        child.wait(_WITHIN_S)
        for code in (7, 8):  # in a fresh interpreter, and by another fork server
            executor.start(job(tmp_path, "end", str(code)))
            (ended,) = executor.wait(_WITHIN_S)
            assert ended.code == code
        (another,) = set(psutil.Process().children()) - others
        assert another != server


@pytest.mark.slow
def test_without_a_fork_server_that_can_fork_jobs_are_carried_out_all_the_same(
    tmp_path: Path,
) -> None:
    """Libraries of linear algebra start threads when they are loaded, unless they may have one."""
    wide = Job("wide", asking(tmp_path, "end", "4"), tmp_path / "log", 2, module=MODULE)
    with LocalExecutor(1) as executor:
        for _ in range(2):
            executor.start(wide)
            (ended,) = executor.wait(_WITHIN_S)
            assert ended.code == 4


@pytest.mark.slow
def test_a_closed_fork_server_forks_nothing(tmp_path: Path) -> None:
    server = ForkServer([], job_environment(job(tmp_path, "deaf")))
    process = JobProcess(job(tmp_path, "deaf"), server=server)
    server.close()
    server.close()
    assert process.wait(_WITHIN_S) == -signal.SIGKILL
    with pytest.raises(ForkServerError):
        JobProcess(job(tmp_path, "end", "0"), server=server)
