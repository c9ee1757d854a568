"""Jobs that are done once their result exists: made, and run until done.

The pauses between starts grow, since a machine that was lost may take minutes to be replaced.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from game_rl.errors import ExperimentError, Interrupted
from game_rl.experiments.executors.executor import CompletedJob, Executor, Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import (
    REQUEST_SUFFIX,
    CompareActionsRequest,
    CopyRequest,
    JobRequest,
    PlayRequest,
    StretchRequest,
    request_file,
    write_request,
)
from game_rl.experiments.records import GenerationRecord
from game_rl.files.run_dir import RunDir, take_claim
from game_rl.system.machine import disk_free_bytes
from game_rl.system.stop_request import StopRequest
from game_rl.system.units import MIB, format_bytes

MOST_DEATHS = 10
"""Deaths of one job without a new checkpoint, after which the experiment fails."""
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 120.0
_LOOK_EVERY_S = 0.2
# A process whose controller was killed ends within seconds. A lock of a lost node on NFS is
# released when its lease on the server expires, by default after 90 s.
_LOCK_TIMEOUT_S = 150.0


@dataclass(frozen=True)
class Task:
    """A job that is done once its result file exists.

    Attributes:
        request: what the job is asked; written to its file each time before it starts.
        result: the file that the job leaves.
        run_dir: run directory that the job writes to and that another process may still hold, or
            None. It may also be the folder of an experiment that the job carries out.
        needs: file that must exist before the task starts, or None; another task writes it as that
            one begins.
    """

    job: Job
    request: JobRequest
    result: Path
    run_dir: RunDir | None = None
    needs: Path | None = None

    @property
    def is_ready(self) -> bool:
        return self.needs is None or self.needs.exists()

    @property
    def is_done(self) -> bool:
        return self.result.exists()

    def newest_checkpoint(self) -> str:
        """Return a text that changes with each new checkpoint of the run or experiment."""
        if self.run_dir is None:
            return ""
        members = sorted((self.run_dir.root / "members").glob("*"))
        saved = {m.name: RunDir(m).checkpoints_newest_first() for m in members}
        saved[""] = self.run_dir.checkpoints_newest_first()
        return " ".join(f"{name}@{found[0].name}" for name, found in saved.items() if found)


@dataclass(frozen=True)
class Death:
    """The death of a job.

    Attributes:
        count: number of deaths since its newest checkpoint.
        pause_s: seconds until it starts again, or None if it does not.
    """

    ended: CompletedJob
    count: int
    pause_s: float | None


@dataclass
class _Deaths:
    """Deaths of one task since its newest checkpoint, which `checkpoint` names."""

    count: int = 0
    checkpoint: str = ""
    starts_at_s: float = 0.0
    """Time before which it is not started again."""

    def add(self, ended: CompletedJob, checkpoint: str, now_s: float) -> Death:
        self.count = 1 if checkpoint != self.checkpoint else self.count + 1
        self.checkpoint = checkpoint
        if self.count >= MOST_DEATHS:
            return Death(ended, self.count, None)
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** (self.count - 1), _LONGEST_PAUSE_S)
        self.starts_at_s = now_s + pause_s
        return Death(ended, self.count, pause_s)


class TaskRunner:
    """Brings tasks to their end with an executor.

    Args:
        on_death: gets the death of each job that was killed.
    """

    def __init__(
        self,
        executor: Executor,
        stop: StopRequest,
        on_death: Callable[[Death], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor = executor
        self._stop = stop
        self._on_death = on_death
        self._clock = clock
        self._deaths: dict[str, _Deaths] = {}
        self._held_since: dict[str, float] = {}

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, and call `on_done` for each as it ends, first for those already done.

        Raises:
            Interrupted: a signal stopped it; all jobs have saved and ended.
            ExperimentError: a job failed, or died too often; the others have saved and ended.
        """
        pending: deque[Task] = deque()
        for task in tasks:
            if task.is_done:
                on_done(task)
            else:
                pending.append(task)
        running: dict[str, Task] = {}
        self._deaths = {task.job.name: _Deaths() for task in tasks}
        try:
            while pending or running:
                if self._stop.reason is not None:
                    raise self._stop.reason
                self._start(pending, running)
                # pop all that have ended first: `running` is counted if the loop below raises
                ends = [(e, running.pop(e.job.name)) for e in self._executor.wait(_LOOK_EVERY_S)]
                for ended, task in ends:
                    if task.is_done:
                        on_done(task)
                    else:
                        self._bury(ended, task)
                        pending.appendleft(task)
        except (ExperimentError, Interrupted):
            self._executor.ask_to_stop()
            left = len(running)
            while left:
                left -= len(self._executor.wait(_LOOK_EVERY_S))
            raise

    def _start(self, pending: deque[Task], running: dict[str, Task]) -> None:
        """Start as many tasks as there are free slots.

        A task waits while its run is still held, or for a while if it has died.
        """
        for _ in range(len(pending)):
            if len(running) == self._executor.slots:
                return
            task = pending.popleft()
            has_waited = self._clock() >= self._deaths[task.job.name].starts_at_s
            if task.is_ready and has_waited and self._is_free(task):
                running[task.job.name] = task
                job = task.job
                write_request(job.request, task.request)
                if task.run_dir is not None:  # no earlier process may write to the run now
                    job = replace(job, claim=take_claim(task.run_dir))
                self._executor.start(job)
            else:
                pending.append(task)
        missing = [task.needs for task in pending if not task.is_ready]
        if len(missing) == len(pending) and missing and not running:
            raise ExperimentError(f"{missing[0]} is gone; restore it from a copy")

    def _is_free(self, task: Task) -> bool:
        """Return whether no other process, such as one of a lost node, holds the task's run.

        Raises:
            ExperimentError: another process has held it for longer than `_LOCK_TIMEOUT_S`.
        """
        if task.run_dir is None or not task.run_dir.is_locked:
            self._held_since.pop(task.job.name, None)
            return True
        since = self._held_since.setdefault(task.job.name, time.monotonic())
        if time.monotonic() - since > _LOCK_TIMEOUT_S:
            raise ExperimentError(
                f"another process is writing to {task.run_dir.root}; stop it, then continue with "
                "--resume"
            )
        return False

    def _bury(self, ended: CompletedJob, task: Task) -> None:
        job = ended.job
        way_on = "" if job.experiment is None else RunDir(Path(job.experiment)).way_on
        if not ended.was_stopped:
            last = "it printed nothing"
            if ended.text:
                last = ended.text.splitlines()[-1]
            elif (free_bytes := disk_free_bytes(job.output)) < MIB:
                last = f"the disk is full, with {format_bytes(free_bytes)} left; free some space"
            what = "left no result" if ended.code == 0 else f"failed with exit code {ended.code}"
            text = f"{job.name} {what} on {ended.where}: {last} (output: {job.output})"
            if way_on not in text:
                text = f"{text}; continue with {way_on}"
            raise ExperimentError(text)
        deaths = self._deaths[job.name]
        death = deaths.add(ended, task.newest_checkpoint(), self._clock())
        self._on_death(death)
        if death.pause_s is None:
            cause = f" ({ended.cause})" if ended.cause else ""
            raise ExperimentError(
                f"{job.name} was killed {death.count} times without a new checkpoint, the "
                f"last time with exit code {ended.code}{cause}; it may need more memory than there "
                f"is (see {job.output}): lower executor.parallel, then continue with "
                f"{way_on or 'the same command'}"
            )


@dataclass(frozen=True)
class MemberTasks:
    """Makes tasks for the runs in an experiment's folder.

    Attributes:
        cpus: cores of each job.
    """

    folder: ExperimentDir
    cpus: int

    def stretch(self, number: int, folder: str, generation: int, *, until: int, seed: int) -> Task:
        """Return the task that trains a run up to its timestep `until`, and plays episodes there.

        Args:
            seed: seed of the episodes.
        """
        run = self.folder.member(folder)
        result = self.folder.generation(generation).result(number)
        request = StretchRequest(
            root=self.folder.root, run=run.root, until=until, seed=seed, result=result
        )
        task = self._task(
            f"member {folder} in generation {generation}",
            request,
            result,
            reads=(run.root,),
            writes=(run.root, result),
        )
        return replace(task, run_dir=run)

    def copy(
        self,
        folder: str,
        parent_folder: str,
        at: int,
        values: Mapping[str, object],
        output: Path,
        *,
        fork: Mapping[str, object] | None = None,
        run_id: str | None = None,
    ) -> Task:
        """Return the task that forks a checkpoint into a new run directory.

        Args:
            at: timestep of the parent's checkpoint.
            values: values of the copy's config, by dotted key.
            fork: keys of the copy's section `fork` in addition to `run`.
            run_id: id of the copy, or None to draw one at random.
        """
        run = self.folder.member(folder)
        parent = self.folder.member(parent_folder).root
        request = CopyRequest(
            root=self.folder.root,
            run=parent,
            at=at,
            to=run.root,
            values=values,
            fork=fork or {},
            run_id=run_id,
            known_as=str(parent.absolute()),
        )
        return self._task(
            f"copy {folder} of {parent_folder}",
            request,
            run.config,
            reads=(parent,),
            writes=(run.root,),
            files=(output.with_name(f"{output.stem}.copy{REQUEST_SUFFIX}"), output),
        )

    def play(
        self, number: int, folder: str, checkpoint: str, *, what: str, episodes: int, seed: int
    ) -> Task:
        """Return the task that plays episodes with a checkpoint.

        Args:
            what: what the episodes are for, which the result's file name begins with.
        """
        run = self.folder.member(folder)
        result = self.folder.validation / f"{what}-{number:02d}.json"
        request = PlayRequest(
            root=self.folder.root,
            run=run.root,
            checkpoint=int(checkpoint),
            episodes=episodes,
            seed=seed,
            result=result,
        )
        return self._task(
            f"{what} of member {folder}", request, result, reads=(run.root,), writes=(result,)
        )

    def actions(self, record: GenerationRecord, *, observations: int, seed: int) -> Task | None:
        """Return the task that compares the actions of a generation's runs on rows of their Lake.

        None if fewer than two runs have finite weights.
        """
        result = self.folder.generation(record.generation).actions
        asked = {m.folder: int(m.checkpoint) for m in record.members if m.checkpoint is not None}
        if len(asked) < 2:
            return None
        request = CompareActionsRequest(
            root=self.folder.root,
            members=self.folder.members,
            checkpoints=asked,
            lake=self.folder.lake,
            observations=observations,
            seed=seed,
            result=result,
        )
        return self._task(
            f"actions in generation {record.generation}",
            request,
            result,
            reads=(*(self.folder.members / name for name in asked), self.folder.lake),
            writes=(result,),
        )

    def _task(
        self,
        name: str,
        request: JobRequest,
        result: Path,
        *,
        reads: tuple[Path, ...],
        writes: tuple[Path, ...],
        files: tuple[Path, Path] | None = None,
    ) -> Task:
        """Return the task, whose request and output are `files`, by default beside the result."""
        asked, output = files or (request_file(result), result.with_suffix(".log"))
        place = str(self.folder.root)
        job = Job(name, asked, output, self.cpus, reads=reads, writes=writes, experiment=place)
        return Task(job, request, result)
