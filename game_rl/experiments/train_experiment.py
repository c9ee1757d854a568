"""Beginning, resuming and finishing an experiment."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.checkpoints.run_game import moved_game
from game_rl.config.allowed_changes import RESUME_EXPERIMENT
from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.experiment import Experiment, dump_experiment, load_experiment
from game_rl.config.loader import Document, dump_config, load_config
from game_rl.config.strict_model import Key, with_changed
from game_rl.errors import (
    ConfigError,
    DoesNotFitError,
    ExperimentError,
    Interrupted,
    NobodyLeftError,
    NotStoredError,
    UsageError,
    system_fault,
)
from game_rl.events import ExperimentBegun, ExperimentEnded, ExperimentListener, WentBack
from game_rl.events.event_log import EventFile, ExperimentEventLog
from game_rl.experiments.backup import backing_up
from game_rl.experiments.controller import ExperimentRun, experiment_state
from game_rl.experiments.executors.executor import (
    Demand,
    LocalExecutor,
    check_installed,
    make_executor,
)
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport, experiment_preflight
from game_rl.experiments.jobs.job_files import (
    FinishedRun,
    FinishRequest,
    Played,
    finished_once,
    read_result,
)
from game_rl.experiments.kept_generations import (
    experiment_bytes,
    finish_going_back,
    go_back,
    superseded_bytes,
)
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import ChampionRecord, GenerationRecord, read_record
from game_rl.experiments.tasks import TaskRunner
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.preflight.random_play import measured_lake
from game_rl.storage.background import ask_once
from game_rl.system.machine import detect_machine, with_room
from game_rl.system.packages import check_extra
from game_rl.system.stop_request import StopRequest
from game_rl.training.admission import check_packages

_ENDING_S = 30.0  # for the last checkpoint and the emulators, in addition to the deadline


@dataclass(frozen=True, kw_only=True)
class ExperimentCommand:
    """Options of the command that carries out an experiment, apart from its config.

    Attributes:
        stop: ends the experiment early once it is set.
        force: start even if the experiment does not fit this machine.
        take_over: upload even if another machine uploads this experiment.
        measures_lake: whether the preflight measures how the game compresses if a Lake is written.
        listeners: each gets every event.
        show: gets the preflight's report before anything starts.
    """

    stop: StopRequest
    force: bool = False
    take_over: bool = False
    measures_lake: bool = False
    listeners: Sequence[ExperimentListener] = ()
    show: Callable[[ExperimentReport], None] = lambda _: None


def begin_experiment(experiment: Experiment, command: ExperimentCommand) -> ChampionRecord:
    """Begin an experiment and bring it to its end.

    Raises:
        UsageError: its folder already holds an experiment or a run, or is locked.
        DoesNotFitError: it does not fit this machine, and the command does not force it.
        Interrupted: a signal stopped it; all that was learned is saved.
        ExperimentError: it cannot continue.
        NotStoredError: it is complete, but was never uploaded.
    """
    folder = ExperimentDir(experiment.config.run_dir)
    _refuse_existing(folder)
    report = _check_fit(experiment, command)
    warnings = _ask_storage(experiment)
    folder.root.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        _refuse_existing(folder)  # another process may have begun one meanwhile
        write_atomic(folder.config, dump_experiment(experiment))
        return _carried_out(folder, experiment, command, report, warnings)


def resume_experiment(
    root: Path,
    command: ExperimentCommand,
    *,
    generation: int | None = None,
    overrides: Sequence[str] = (),
) -> ChampionRecord:
    """Resume the experiment at `root`, exactly as if it had not been interrupted.

    Args:
        generation: go back to the decision after this generation, and set aside what came later.
        overrides: `key=value` settings, for keys that change no result.

    Raises:
        UsageError: there is no experiment, it is locked, a key must not change, or the generation
            is not kept.
        DoesNotFitError: it does not fit this machine, and the command does not force it.
        Interrupted: a signal stopped it; all that was learned is saved.
        ExperimentError, NotStoredError: it cannot continue; it is complete, but not uploaded.
    """
    folder = find_experiment(root)
    with folder.locked():
        here = [f"run_dir={json.dumps(str(root))}", *_moved_game(folder, overrides)]  # it may have
        before = load_experiment(folder.config, here, is_saved=True)  # been moved
        if generation is not None and before.learner is not None:
            raise UsageError(
                f"a {before.config.kind} with a learner cannot go back to an earlier generation: "
                "its Lake already has what was played later; start a new one with --config"
            )
        experiment = load_experiment(folder.config, [*overrides, *here], is_saved=True)
        _refuse_changes(before, experiment)
        report = _check_fit(experiment, command, generation)
        warnings = _ask_storage(experiment)
        if before.learner is not None:  # else members have Lakes of their own
            follow_lake(folder)
        write_atomic(folder.config, dump_experiment(experiment))
        finish_going_back(folder)
        went = None if generation is None else (generation, go_back(folder, generation))
        return _carried_out(folder, experiment, command, report, warnings, went)


def _moved_game(folder: ExperimentDir, overrides: Sequence[str]) -> list[str]:
    """Return the override that gives an experiment its game back after a move, or the given one."""
    given = [each for each in overrides if each.replace(" ", "").startswith("member.game=")]
    runs = [RunDir(path) for path in sorted(folder.members.glob("*")) if RunDir(path).exists()]
    if given or not runs:
        return given
    return [f"member.{override}" for override in moved_game(runs[0], ())]


def check_experiment_packages(experiment: Experiment) -> None:
    """Check that the packages of extras that an experiment needs are installed.

    Raises:
        UsageError: one is not.
    """
    check_installed(experiment.config.executor)
    if experiment.config.upload is not None:
        check_extra("obstore", "upload", way_out="train without uploading: upload=null")
    for run in experiment.players:
        check_packages(run)


def _refuse_existing(folder: ExperimentDir) -> None:
    if folder.exists():
        raise UsageError(
            f"{folder.root} already holds an experiment; continue it with {_way_on(folder)}, "
            "choose another place with --set run_dir=..., or delete it"
        )
    if (folder.root / "config.yaml").exists():
        raise UsageError(
            f"{folder.root} holds a run; choose another place with --set run_dir=..., or delete it"
        )


def _refuse_changes(before: Experiment, now: Experiment) -> None:
    old = before.settings
    new = now.settings
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    refused = [key for key in changed if RESUME_EXPERIMENT.binds(key)]
    if refused:
        may_change = [k for k in RESUME_EXPERIMENT.free if k in type(now.config).model_fields]
        raise UsageError(
            f"a resumed {now.config.kind} cannot change {', '.join(refused)}: it would become "
            f"another experiment; only {', '.join(may_change)} may change. Start a new one with "
            "--config"
        )


def _check_fit(
    experiment: Experiment, command: ExperimentCommand, generation: int | None = None
) -> ExperimentReport:
    config = experiment.config
    folder = ExperimentDir(experiment.config.run_dir)
    check_experiment_packages(experiment)
    machine = with_room(detect_machine(config.run_dir), experiment_bytes(folder))
    game = load_game(experiment.run.game)
    report = experiment_preflight(
        experiment,
        game,
        machine,
        lake=measured_lake(experiment.run, game) if command.measures_lake else None,
        superseded_bytes=superseded_bytes(folder, going_back_to=generation),
    )
    command.show(report)
    # the executor of a cluster checks each node for room for a member
    may_fit_elsewhere = report.is_of_a_node and not report.lacks_disk
    if report.verdict == "does_not_fit" and not (command.force or may_fit_elsewhere):
        raise DoesNotFitError(
            f"the {config.kind} does not fit this machine; apply a fix above, or start it anyway "
            "with --force"
        )
    return report


def _carried_out(
    folder: ExperimentDir,
    experiment: Experiment,
    command: ExperimentCommand,
    report: ExperimentReport,
    warnings: Sequence[str],
    went: tuple[int, Path] | None = None,
) -> ChampionRecord:
    """Carry out the experiment, whose config is written and whose lock is held.

    Args:
        went: the generation that the population went back to, and the folder with later ones.
    """
    write_atomic(folder.preflight, json.dumps(report.to_json(), indent=2))
    plan = Plan(folder, experiment)
    with EventFile(folder.events) as file:
        events = ExperimentEventLog(file, command.listeners)
        with events.recording_failure(), _naming_full_disks(folder):
            with (
                backing_up(folder, experiment, events, take_over=command.take_over) as copy,
                make_executor(
                    experiment.config.executor, _demand(experiment, report, events)
                ) as executor,
            ):
                for warning in warnings:
                    events.warn(warning)
                if went is not None:
                    events.emit(WentBack(generation=went[0] - 1, set_aside=str(went[1])))
                events.emit(
                    ExperimentBegun(
                        generation=experiment_state(plan).generation,
                        experiment=folder.identity().id,
                        kind=experiment.config.kind,
                        members=experiment.config.members,
                        generations=plan.config.generations,
                        slots=executor.slots,
                    )
                )
                try:
                    champion = ExperimentRun(plan, executor, events, command.stop).run()
                except Interrupted as reason:
                    raise Interrupted(
                        f"{reason}; all members are saved, continue with {_way_on(folder)}",
                        exit_code=reason.exit_code,
                    ) from None
            not_stored = "" if copy is None else copy.nothing_stored()
            code = NotStoredError.exit_code if not_stored else 0
            events.emit(ExperimentEnded(reason="completed", exit_code=code, text=not_stored))
    if not_stored:
        raise NotStoredError(not_stored)
    return champion


def _ask_storage(experiment: Experiment) -> list[str]:
    """Ask each storage of the experiment and its runs once, and return warnings.

    Raises:
        UsageError: one does not exist, or refuses access.
    """
    sections = [experiment.config.upload, *(run.upload for run in experiment.players)]
    executor = experiment.config.executor
    if isinstance(executor, RayExecutorConfig) and executor.storage is not None:
        way_out = "to train in a folder that all nodes share, remove it"
        ask_once(executor.storage, key="executor.storage", way_out=way_out)  # a fault ends it later
    addresses = dict.fromkeys(upload.to for upload in sections if upload is not None)
    return [warning for to in addresses for warning in ask_once(to)]


def _demand(experiment: Experiment, report: ExperimentReport, events: ExperimentEventLog) -> Demand:
    config = experiment.config
    disk = report.member.footprint.disk
    return Demand(
        slots=report.runs_at_once,
        members=config.members,
        cpus=config.cpus_per_member,
        ram_bytes=report.largest_run_bytes,
        gpus=report.gpus_per_member,
        patience_s=experiment.run.checkpoints.deadline_s + _ENDING_S,
        folder=config.run_dir,
        disk_bytes=disk.bytes + disk.momentary_bytes,  # temporary files included
        game=experiment.run.game,
        warn=events.warn,
    )


def _way_on(folder: ExperimentDir) -> str:
    return RunDir(folder.root).way_on


@contextmanager
def _naming_full_disks(folder: ExperimentDir) -> Iterator[None]:
    """Raise an ExperimentError in place of an OSError, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        raise ExperimentError(
            f"{system_fault(error, folder.root)}; all that the members learned up to their "
            f"newest checkpoints is saved; continue with {_way_on(folder)}"
        ) from error


_LAKE: Key = ("member", "lake", "path")


def follow_lake(folder: ExperimentDir) -> None:
    """Point the configs of the runs to the Lake and the teachers in the folder's new place.

    Paths in their checkpoints are not used. Call it before the experiment's own config is
    rewritten, as the Lake's path in there shows whether the folder was moved.
    """
    lake = folder.lake.absolute()
    root, _ = Document(folder.config, ConfigError).tree(())
    if not root.has(_LAKE) or root.nearest(_LAKE).value == str(lake):
        return
    for path in sorted(folder.members.glob("*")):
        run_dir = RunDir(path)
        if run_dir.exists():
            config = load_config(run_dir.config, is_saved=True)
            changes = dict[Key, Any]()
            if config.lake is not None:
                changes["lake", "path"] = lake
            if config.algorithm.lakes is not None:
                changes["algorithm", "learn_from", "lakes"] = [lake]
            teacher = config.algorithm.teacher
            if teacher is not None and not run_dir.teacher.exists():  # else it reads its own copy
                run = folder.members.absolute() / Path(teacher.run).name
                changes["algorithm", "teacher", "run"] = str(run)
            write_atomic(run_dir.config, dump_config(with_changed(config, changes)))


def finish_experiment(request: FinishRequest, command: ExperimentCommand) -> FinishedRun:
    """Carry out an experiment, test its champion, and write the result.

    The champion is chosen by the experiment's own rule, on other episodes. An interrupted call can
    be repeated as often as needed and gives the same result; if there is one already, it is
    returned. If all members' weights become non-finite, that is a result, too.

    Raises:
        Interrupted: a signal stopped it; what was learned is saved.
        ExperimentError: the experiment cannot continue.
    """
    return finished_once(request, lambda: _finished(request, command), NobodyLeftError)


def _finished(request: FinishRequest, command: ExperimentCommand) -> FinishedRun:
    champion = resume_experiment(request.run, command)
    folder = ExperimentDir(request.run)
    plan = Plan(folder, load_experiment(folder.config, is_saved=True))
    test = plan.tasks.play(
        champion.number,
        champion.folder,
        champion.checkpoint,
        what="test",
        episodes=request.episodes,
        seed=request.seed,
    )
    try:
        with folder.locked(), LocalExecutor(slots=1) as executor:
            TaskRunner(executor, command.stop, lambda *_: None).run([test], lambda _: None)
    except Interrupted as reason:
        text = f"{reason}; the experiment is complete"
        raise Interrupted(text, exit_code=reason.exit_code) from None
    last = folder.generation(experiment_state(plan).generation).record
    record = read_record(last, GenerationRecord)
    assert record is not None
    timesteps = int(champion.checkpoint)
    tested = next(member for member in record.members if member.number == champion.number)
    return FinishedRun(
        timesteps=timesteps,
        policy_timesteps=timesteps,
        weights_sha256=tested.weights_sha256,
        played=read_result(Played, test.result),
    )
