"""Real processes: how they end, what they are given, and that none is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from game_rl.experiments.executors.executor import CompletedJob, Job, LocalExecutor
from game_rl.experiments.jobs.job_files import StretchRequest, request_file, write_request
from game_rl.files.run_dir import CLAIM_VARIABLE, EXPERIMENT_VARIABLE, RunDir
from tests.experiments.executors.job_program import MODULE, asking

_TIMEOUT_S = 120.0


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor(2) as opened:
        yield opened


def ends_of(executor: LocalExecutor, count: int) -> list[CompletedJob]:
    ended: list[CompletedJob] = []
    deadline = time.monotonic() + _TIMEOUT_S
    while len(ended) < count and time.monotonic() < deadline:
        ended += executor.wait(1.0)
    return ended


def test_a_job_ends_with_its_exit_code_and_the_end_of_what_it_printed(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    good = asking(tmp_path, "sleep", "0")
    executor.start(Job("good", good, tmp_path / "good.log", module=MODULE))
    executor.start(Job("bad", tmp_path / "nothing", tmp_path / "bad.log"))
    ended = {end.job.name: end for end in ends_of(executor, 2)}
    assert (ended["good"].code, ended["good"].text) == (0, "")
    assert ended["bad"].code == 2
    assert ended["bad"].text.startswith("error: there is no ")
    assert not ended["bad"].was_stopped


def test_the_output_of_an_earlier_attempt_stays(executor: LocalExecutor, tmp_path: Path) -> None:
    for _ in range(2):
        again = asking(tmp_path, "sleep", "0")
        executor.start(Job("again", again, tmp_path / "log", module=MODULE))
        ends_of(executor, 1)
    assert len((tmp_path / "log").read_text(encoding="utf-8").splitlines()) == 2


def test_claim_and_experiment_of_a_job_are_not_those_of_the_jobs_that_it_starts(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CLAIM_VARIABLE, "3-to-the-experiment")
    monkeypatch.setenv(EXPERIMENT_VARIABLE, "outer")
    for name, claim, experiment in (("copy", None, None), ("member", "7-to-a-run", "inner")):
        asked = asking(tmp_path, "environment")
        job = Job(name, asked, tmp_path / name, 1, claim, MODULE, experiment=experiment)
        executor.start(job)
        ends_of(executor, 1)
        found = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        assert (found[CLAIM_VARIABLE], found[EXPERIMENT_VARIABLE]) == (claim, experiment)


def test_a_job_that_is_killed_was_stopped_and_so_was_one_that_saved(tmp_path: Path) -> None:
    job = Job("x", tmp_path / "x", tmp_path / "log")
    assert CompletedJob(job, -signal.SIGKILL, "here").was_stopped
    assert CompletedJob(job, 143, "here").was_stopped
    assert not CompletedJob(job, 1, "here").was_stopped
    assert not CompletedJob(job, 0, "here").was_stopped


@pytest.mark.slow
def test_closing_ends_what_still_runs(tmp_path: Path) -> None:
    run, before = _endless(tmp_path), set(psutil.Process().children(recursive=True))
    executor = LocalExecutor(1)
    executor.start(run)
    _wait_for(run)
    family = set(psutil.Process().children(recursive=True)) - before
    assert len(family) > 2
    executor.close()
    _, left = psutil.wait_procs(family, timeout=_TIMEOUT_S)
    assert left == []


@pytest.mark.slow
def test_a_job_ends_when_its_controller_is_killed(tmp_path: Path) -> None:
    """The controller is a process that starts a job with this executor and waits."""
    run = _endless(tmp_path)
    code = f"""
from pathlib import Path
from game_rl.experiments.executors.executor import Job
from game_rl.experiments.executors.executor import LocalExecutor
executor = LocalExecutor(1)
executor.start(Job("x", Path({str(run.request)!r}), Path({str(run.output)!r})))
print("started", flush=True)
executor.wait(600)
"""
    controller = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert controller.stdout is not None
    assert controller.stdout.readline() == "started\n"
    _wait_for(run)
    family = psutil.Process(controller.pid).children(recursive=True)
    assert family
    os.kill(controller.pid, signal.SIGKILL)
    controller.wait()
    controller.stdout.close()
    _, left = psutil.wait_procs(family, timeout=_TIMEOUT_S)
    assert left == []


def _endless(tmp_path: Path) -> Job:
    """A training that has hours to go."""
    run_dir = RunDir(tmp_path / "run")
    run_dir.root.mkdir()
    run_dir.config.write_text(
        f"game: duel\ntotal_timesteps: 100_000_000\nrun_dir: {run_dir.root}\n"
        "env: {n_envs: 2, n_workers: 1}\nalgorithm: {n_steps: 16, batch_size: 16}\n",
        encoding="utf-8",
    )
    result = tmp_path / "endless.json"
    asked = StretchRequest(
        root=tmp_path, run=run_dir.root, until=100_000_000, seed=1, result=result
    )
    write_request(request_file(result), asked)
    return Job("endless", request_file(result), tmp_path / "endless.log")


def _wait_for(run: Job) -> None:
    """Until the training has begun."""
    deadline = time.monotonic() + _TIMEOUT_S
    events = RunDir(run.request.with_name("run")).events
    while time.monotonic() < deadline:
        if events.exists() and "rollout_ended" in events.read_text(encoding="utf-8"):
            return
        time.sleep(0.05)
    raise AssertionError(run.output.read_text(encoding="utf-8"))
