"""Tasks, carried out by an executor whose jobs each write one file and end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from game_rl.errors import ExperimentError
from game_rl.executors.executor import Ended, Job
from game_rl.experiments import tasks
from game_rl.experiments.tasks import StopFlag, Task, TaskRunner
from game_rl.run_dir import RunDir


class WritingExecutor:
    """Its jobs write the claim that they get into the file that they are named after.

    Args:
        killed: how many of the first ones are killed before that.
    """

    slots = 1

    def __init__(self, killed: int = 0) -> None:
        self.claims: list[str | None] = []
        self._killed = killed
        self._running: list[Job] = []

    def start(self, job: Job) -> None:
        assert len(self._running) < self.slots
        self._running.append(job)

    def wait(self, timeout_s: float) -> Sequence[Ended]:  # noqa: ARG002
        if not self._running:
            return []
        job = self._running.pop()
        self.claims.append(job.claim)
        if len(self.claims) <= self._killed:
            return [Ended(job, -9, "paper", cause="a power cut")]
        Path(job.arguments[0]).write_text(str(job.claim))
        return [Ended(job, 0, "paper")]

    def ask_to_stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def task(folder: Path, name: str) -> Task:
    run_dir = RunDir(folder / name)
    run_dir.root.mkdir()
    result = folder / f"{name}.json"
    return Task(Job(name, (str(result),), folder / f"{name}.log"), result, run_dir)


def test_each_start_of_a_member_has_a_claim_of_a_later_epoch(tmp_path: Path) -> None:
    executor, deaths = WritingExecutor(killed=3), list[tuple[str, int]]()
    runner = TaskRunner(executor, StopFlag(), lambda ended, n: deaths.append((ended.cause, n)))
    runner.run([task(tmp_path, "a")], lambda _: None)
    epochs = [str(claim).partition("-")[0] for claim in executor.claims]
    assert epochs == ["1", "2", "3", "4"]
    assert (tmp_path / "a" / "claim").read_text() == executor.claims[-1]
    assert deaths == [("a power cut", n) for n in (1, 2, 3)]


def test_a_job_that_writes_to_no_run_has_no_claim(tmp_path: Path) -> None:
    executor = WritingExecutor()
    result = tmp_path / "x.json"
    job = Job("x", (str(result),), tmp_path / "x.log")
    TaskRunner(executor, StopFlag(), lambda *_: None).run([Task(job, result)], lambda _: None)
    assert executor.claims == [None]


def test_a_run_that_another_process_still_holds_waits_while_others_go_on(tmp_path: Path) -> None:
    first, second = task(tmp_path, "first"), task(tmp_path, "second")
    assert first.run_dir is not None
    held = FileLock(first.run_dir.root / "lock")
    held.acquire()
    done = []

    def on_done(task: Task) -> None:
        done.append(task.job.name)
        held.release()

    TaskRunner(WritingExecutor(), StopFlag(), lambda *_: None).run([first, second], on_done)
    assert done == ["second", "first"]


def test_a_task_waits_for_the_file_that_another_leaves(tmp_path: Path) -> None:
    first, second = task(tmp_path, "first"), task(tmp_path, "second")
    first = replace(first, needs=second.result)
    done: list[str] = []
    runner = TaskRunner(WritingExecutor(), StopFlag(), lambda *_: None)
    runner.run([first, second], lambda task: done.append(task.job.name))
    assert done == ["second", "first"]


def test_a_file_that_nobody_leaves_any_more_ends_the_experiment(tmp_path: Path) -> None:
    only = replace(task(tmp_path, "only"), needs=tmp_path / "lake.json")
    with pytest.raises(ExperimentError, match=r"lake\.json is gone"):
        TaskRunner(WritingExecutor(), StopFlag(), lambda *_: None).run([only], lambda _: None)


def test_a_run_that_is_held_for_good_ends_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_LOCK_TIMEOUT_S", 0.2)
    only = task(tmp_path, "only")
    assert only.run_dir is not None
    with (
        FileLock(only.run_dir.root / "lock"),
        pytest.raises(ExperimentError, match="another process is writing to"),
    ):
        TaskRunner(WritingExecutor(), StopFlag(), lambda *_: None).run([only], lambda _: None)
