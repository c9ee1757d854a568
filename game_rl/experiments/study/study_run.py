"""Carrying out a study: the missing results are made.

All state is on the disk. If the process is killed, at whatever moment, the next call makes what is
missing and reaches the same results.
"""

from collections.abc import Callable
from dataclasses import dataclass

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.config.experiments.study_config import ExperimentArm, Study
from game_rl.config.loader import dump_config
from game_rl.errors import DoesNotFitError, ExperimentError, Interrupted, UsageError
from game_rl.experiments.executors.executor import Executor, Job, LocalExecutor
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import FinishedRun, FinishRequest, read_result, request_file
from game_rl.experiments.study.study_forecast import StudyReport, study_preflight
from game_rl.experiments.study.study_registration import registered
from game_rl.experiments.study.study_results import (
    Pair,
    PairResult,
    StudyDir,
    pairs_of,
    read_study_result,
    result_of,
    study_dir,
    write_result,
)
from game_rl.experiments.tasks import Death, Task, TaskRunner
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.preflight.facts import MeasuredLake
from game_rl.preflight.random_play import measured_lake
from game_rl.system.machine import detect_machine
from game_rl.system.stop_request import StopRequest


@dataclass(frozen=True, kw_only=True)
class StudyCommand:
    """Options of the command that carries out a study.

    Attributes:
        stop: ends the study early once it is set.
        force: start even if the study does not fit this machine.
        measures_lakes: measure first how the games compress in the Lakes that arms write.
        show: gets the preflight's report before anything starts.
        on_result: gets each new result, the number of results so far and the number of all.
        on_death: gets the death of each process that was killed.
    """

    stop: StopRequest
    force: bool = False
    measures_lakes: bool = False
    show: Callable[[StudyReport], None] = lambda _: None
    on_result: Callable[[PairResult, int, int], None] = lambda *_: None
    on_death: Callable[[Death], None] = lambda *_: None


def run_study(study: Study, command: StudyCommand) -> None:
    """Make every result that is missing.

    Raises:
        UsageError: the study is not registered, or another process carries it out.
        ExperimentError: it is not what was registered, or a run cannot continue.
        DoesNotFitError: it does not fit this machine, and the command does not force it.
        Interrupted: a signal stopped it; all that was learned is saved.
    """
    registration = registered(study).sha256()
    folder = study_dir(study.config)
    lakes = dict[str, MeasuredLake]()
    if command.measures_lakes:
        for name, arm in study.arms.items():
            run = arm.players[0]
            lake = measured_lake(run, load_game(run.game))
            if lake is not None:
                lakes[name] = lake
    report = study_preflight(study, detect_machine(study.config.run_dir), lakes=lakes)
    command.show(report)
    if report.verdict == "does_not_fit" and not command.force:
        raise DoesNotFitError(
            "the study does not fit this machine; lower executor.parallel, make room, or start it "
            "anyway with --force"
        )
    folder.runs.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        mark = folder.registration_of_runs
        if not mark.exists():
            write_atomic(mark, registration + "\n")
        elif mark.read_text(encoding="utf-8").strip() != registration:
            raise UsageError(
                f"{folder.runs} holds runs of another registration; delete it, or name another "
                "folder with --set run_dir=..."
            )
        RunDir(folder.runs).remove_leftovers()  # none of the runs is under way
        with LocalExecutor(report.slots) as executor:
            StudyRun(study, folder, registration, executor, command).run()


@dataclass(frozen=True)
class StudyRun:
    """A study that this process carries out; it holds the lock of the folder."""

    study: Study
    folder: StudyDir
    registration: str
    executor: Executor
    command: StudyCommand

    def run(self) -> None:
        pairs = list(pairs_of(self.study))
        missing = [
            pair
            for pair in pairs
            if read_study_result(self.folder, pair, registration=self.registration) is None
        ]
        tasks = [_begun_task(self.study, self.folder, pair) for pair in missing]
        by_result = {task.result: pair for task, pair in zip(tasks, missing, strict=True)}
        done = len(pairs) - len(missing)

        def take(task: Task) -> None:
            nonlocal done
            done += 1
            pair = by_result[task.result]
            finished = read_result(FinishedRun, task.result)
            assert finished is not None
            result = _kept(self.study, self.folder, pair, finished, self.registration)
            self.command.on_result(result, done, len(pairs))

        try:
            TaskRunner(self.executor, self.command.stop, self.command.on_death).run(tasks, take)
        except Interrupted as reason:
            raise Interrupted(
                f"{reason}; all runs are saved, the same command continues the study",
                exit_code=reason.exit_code,
            ) from None
        except ExperimentError as error:
            raise ExperimentError(f"{error} (the same command continues the study)") from None


def _begun_task(study: Study, folder: StudyDir, pair: Pair) -> Task:
    """Write the config of a pair's run or experiment, unless it exists.

    Returns:
        The task that trains it to its end and plays the test.
    """
    config = study.config
    arm = study.arms[pair.arm]
    run_dir = folder.run(pair.arm, pair.seed)
    module = "game_rl.experiments.jobs"
    if isinstance(arm, ExperimentArm):
        module = "game_rl.experiments"
        path = ExperimentDir(run_dir.root).config
        text = dump_experiment(arm.of(pair.seed, run_dir.root))
    else:
        path = run_dir.config
        text = dump_config(arm.of(pair.seed, run_dir.root))
    if not path.exists():
        run_dir.root.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    result = folder.finished(pair.arm, pair.seed)
    request = FinishRequest(
        root=folder.runs,
        run=run_dir.root,
        selection=config.selection,
        episodes=config.test.episodes,
        seed=config.test.seed,
        result=result,
    )
    job = Job(
        pair.name,
        request_file(result),
        folder.output(pair.arm, pair.seed),
        config.cpus_per_run,
        module=module,
    )
    return Task(job, request, result, run_dir)


def give_up(study: Study, pair: Pair, reason: str) -> PairResult:
    """Record a run that cannot be brought to its end as failed.

    Raises:
        UsageError: the study has no such (arm, seed), or one with a result, or a process carries
            out the study.
        ExperimentError: the study is not what was registered.
    """
    registration = registered(study).sha256()
    folder = study_dir(study.config)
    if pair not in set(pairs_of(study)):
        raise UsageError(
            f"the study has no {pair.name}; its arms are {', '.join(study.arms)}, its seeds "
            f"{', '.join(map(str, study.config.seeds))}"
        )
    folder.runs.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        if read_study_result(folder, pair, registration=registration) is not None:
            raise UsageError(
                f"{pair.name} has a result already: {folder.result(pair.arm, pair.seed)}"
            )
        finished = FinishedRun(failure="given_up", text=f"given up: {reason}")
        return _kept(study, folder, pair, finished, registration)


def _kept(
    study: Study, folder: StudyDir, pair: Pair, finished: FinishedRun, registration: str
) -> PairResult:
    result = result_of(study, folder, pair, finished, registration=registration)
    return write_result(folder, result)
