"""Tasks, carried out by an executor whose jobs each write one file and end."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from game_rl.errors import ExperimentError
from game_rl.experiments import tasks
from game_rl.experiments.executors.executor import CompletedJob, Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import StretchRequest, read_request, request_file
from game_rl.experiments.tasks import Death, MemberTasks, Task, TaskRunner
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest


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

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:  # noqa: ARG002
        if not self._running:
            return []
        job = self._running.pop()
        self.claims.append(job.claim)
        if len(self.claims) <= self._killed:
            return [CompletedJob(job, -9, "paper", cause="a power cut")]
        request = read_request(job.request)
        assert isinstance(request, StretchRequest)
        request.result.write_text(str(job.claim), encoding="utf-8")
        return [CompletedJob(job, 0, "paper")]

    def ask_to_stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def task(folder: Path, name: str) -> Task:
    run_dir = RunDir(folder / name)
    run_dir.root.mkdir()
    result = folder / f"{name}.json"
    request = StretchRequest(root=folder, run=run_dir.root, until=9, seed=1, result=result)
    job = Job(name, request_file(result), folder / f"{name}.log")
    return Task(job, request, result, run_dir)


def test_each_start_of_a_member_has_a_claim_of_a_later_epoch(tmp_path: Path) -> None:
    executor, deaths = WritingExecutor(killed=3), list[tuple[str, int]]()
    runner = TaskRunner(
        executor,
        StopRequest(math.inf),
        lambda death: deaths.append((death.ended.cause, death.count)),
        clock=itertools.count(step=1_000).__next__,
    )
    runner.run([task(tmp_path, "a")], lambda _: None)
    epochs = [str(claim).partition("-")[0] for claim in executor.claims]
    assert epochs == ["1", "2", "3", "4"]
    assert (tmp_path / "a" / "claim").read_text(encoding="utf-8") == executor.claims[-1]
    assert deaths == [("a power cut", n) for n in (1, 2, 3)]


class Waiting(WritingExecutor):
    """An executor whose waits take as long as they may, by a clock of its own."""

    def __init__(self, killed: int) -> None:
        super().__init__(killed)
        self.now_s = 0.0
        self.started_s: list[float] = []

    def start(self, job: Job) -> None:
        self.started_s.append(self.now_s)
        super().start(job)

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:
        ended = super().wait(timeout_s)
        self.now_s += 0 if ended else timeout_s
        return ended


def test_a_job_that_keeps_dying_starts_again_after_pauses_that_grow_to_minutes(
    tmp_path: Path,
) -> None:
    executor, deaths = Waiting(killed=99), list[Death]()
    runner = TaskRunner(
        executor, StopRequest(math.inf), deaths.append, clock=lambda: executor.now_s
    )
    with pytest.raises(ExperimentError, match=r"killed 10 times .* exit code -9 \(a power cut\)"):
        runner.run([task(tmp_path, "a")], lambda _: None)
    expected = [1, 2, 4, 8, 16, 32, 64, 120, 120]
    assert [death.pause_s for death in deaths] == [*expected, None]
    pauses = [after - before for before, after in itertools.pairwise(executor.started_s)]
    assert pauses == pytest.approx(expected, abs=0.5)


def test_the_pauses_begin_again_after_a_new_checkpoint(tmp_path: Path) -> None:
    executor, deaths = Waiting(killed=4), list[Death]()
    one = task(tmp_path, "a")

    def on_death(death: Death) -> None:
        deaths.append(death)
        if len(deaths) == 2:
            (tmp_path / "a" / "checkpoints" / "000000000100").mkdir(parents=True)

    TaskRunner(executor, StopRequest(math.inf), on_death, clock=lambda: executor.now_s).run(
        [one], lambda _: None
    )
    assert [death.count for death in deaths] == [1, 2, 1, 2]
    assert [death.pause_s for death in deaths] == [1, 2, 1, 2]


def test_others_train_while_one_that_died_pauses(tmp_path: Path) -> None:
    executor = Waiting(killed=1)
    done = list[str]()
    TaskRunner(executor, StopRequest(math.inf), lambda _: None, clock=lambda: executor.now_s).run(
        [task(tmp_path, "a"), task(tmp_path, "b")], lambda task: done.append(task.job.name)
    )
    assert done == ["b", "a"]


def test_each_job_of_a_member_has_a_request_of_its_own_beside_its_result(tmp_path: Path) -> None:
    member, generation = MemberTasks(ExperimentDir(tmp_path), 1), tmp_path / "generations" / "0007"
    output = member.folder.generation(7).output(3)
    made = (
        member.stretch(3, "03", 7, until=64, seed=1),
        member.copy("03.g0007", "01", 64, {}, output),
        member.play(3, "03", "64", what="final", episodes=1, seed=1),
    )
    assert [task.job.request for task in made] == [
        generation / "03.request.json",
        generation / "03.copy.request.json",
        tmp_path / "validation" / "final-03.request.json",
    ]
    validation = tmp_path / "validation" / "final-03.log"
    assert [task.job.output for task in made] == [output, output, validation]


def test_a_job_that_writes_to_no_run_has_no_claim(tmp_path: Path) -> None:
    executor = WritingExecutor()
    TaskRunner(executor, StopRequest(math.inf), lambda *_: None).run(
        [replace(task(tmp_path, "x"), run_dir=None)], lambda _: None
    )
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

    TaskRunner(WritingExecutor(), StopRequest(math.inf), lambda *_: None).run(
        [first, second], on_done
    )
    assert done == ["second", "first"]


def test_a_task_waits_for_the_file_that_another_leaves(tmp_path: Path) -> None:
    first, second = task(tmp_path, "first"), task(tmp_path, "second")
    first = replace(first, needs=second.result)
    done: list[str] = []
    runner = TaskRunner(WritingExecutor(), StopRequest(math.inf), lambda *_: None)
    runner.run([first, second], lambda task: done.append(task.job.name))
    assert done == ["second", "first"]


def test_a_file_that_nobody_leaves_any_more_ends_the_experiment(tmp_path: Path) -> None:
    only = replace(task(tmp_path, "only"), needs=tmp_path / "lake.json")
    with pytest.raises(ExperimentError, match=r"lake\.json is gone"):
        TaskRunner(WritingExecutor(), StopRequest(math.inf), lambda *_: None).run(
            [only], lambda _: None
        )


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
        TaskRunner(WritingExecutor(), StopRequest(math.inf), lambda *_: None).run(
            [only], lambda _: None
        )
