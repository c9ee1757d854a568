"""Training a run from its config or a checkpoint to the final evaluation."""

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

import torch

from game_rl.algorithms.automatic import resolve_auto
from game_rl.callbacks.baselines import play_baselines
from game_rl.callbacks.evaluation import Evaluation, EvaluationInterrupted, evaluated_event
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_store import find_checkpoint
from game_rl.checkpoints.evaluation_files import restore_evaluations
from game_rl.checkpoints.named import find_run
from game_rl.checkpoints.run_game import moved_game
from game_rl.checkpoints.training_log import cut_log
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.values import BASELINES_S
from game_rl.errors import Interrupted, NoCheckpointError, NotStoredError, TrainingError
from game_rl.events import Ended, Evaluating, Listener, Recorded, StillWorking
from game_rl.events.event_log import EventFile, EventLog
from game_rl.events.slow_work import telling_if_slow
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import measured_ram_peak_bytes
from game_rl.games.definition import Game, load_game
from game_rl.lake.lake_feed import level_problems
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.preflight.preflight import FootprintComparison, PreflightReport, compare_footprint
from game_rl.storage.background import BackgroundUpload, ask_once, upload_settings
from game_rl.storage.upload_settings import UploadSettings
from game_rl.system.process_memory import PssSampler
from game_rl.system.stop_request import StopRequest
from game_rl.training.admission import (
    announced_parts,
    changes,
    check_fit,
    refuse_existing_run,
)
from game_rl.training.extension import GivenCallback, evaluation_seed
from game_rl.training.extensions.upload_extension import UploadExtension, uploading_run
from game_rl.training.forking import make_fork, plan_fork
from game_rl.training.make_callbacks import EXTENSIONS, episode_trackers, not_restored
from game_rl.training.resuming import (
    Asked,
    already_reached,
    begin_again,
    begun,
    disk_fault,
    go_back_to,
    resumed,
)
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.wandb_log import logging_to_wandb


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        run_dir: directory of the run, which every function takes that takes a run.
        timesteps: number of timesteps learned from so far.
        frame_skip: emulator frames in each timestep.
        waited_frames: emulator frames beyond these, which the game's `step` has added.
        footprint: memory and disk in bytes, predicted and measured, by name; empty if the run was
            left alone.
        evaluation: final evaluation of the best policy; None if there was none, because the run has
            not reached its end or the command asked for none.
        best_name: name of the best policy, for people; None without a final evaluation.
        video: clip of the best policy; None if none was recorded.
        left_alone: why nothing was done; empty if something was.
        ended_by: condition of `stop_when` that ended the run before its total; empty if none did.
        not_stored: says that the run's upload never worked; empty if it did, or there is none.
    """

    run_dir: RunDir
    timesteps: int
    frame_skip: int
    footprint: FootprintComparison
    evaluation: Evaluation | None = None
    best_name: str | None = None
    video: Path | None = None
    left_alone: str = ""
    ended_by: str = ""
    not_stored: str = ""
    waited_frames: int = 0

    @property
    def exit_code(self) -> int:
        """Exit code of the command; 0 unless nothing of the upload was stored."""
        return NotStoredError.exit_code if self.not_stored else 0


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Options of a training that are not part of the run's config.

    Attributes:
        until: timestep at which to save and leave; None: the run's end.
        force: whether to start even if the run does not fit this machine.
        evaluates_at_end: whether to play and record the best policy at the run's end.
        take_over: whether to upload the run even if another machine does.
        measures_lake: whether the preflight measures how the game compresses if the run writes a
            Lake; see `check_fit`.
        asks_storage: whether to refuse storage that does not exist or denies access.
        stop: ends the training early once a stop is requested.
        callbacks: custom callbacks beside those of the config.
        listeners: listeners, each of which receives every event.
        show: receives the preflight's report before anything starts.
    """

    until: int | None = None
    force: bool = False
    evaluates_at_end: bool = True
    take_over: bool = False
    measures_lake: bool = False
    asks_storage: bool = True
    stop: StopRequest
    callbacks: Sequence[GivenCallback] = ()
    listeners: Sequence[Listener] = ()
    show: Callable[[PreflightReport], None] = lambda _: None


def train(
    config: RunConfig, command: TrainCommand, *, report: PreflightReport | None = None
) -> TrainingResult:
    """Start a new run, or the fork of another one.

    Args:
        report: report of a preflight that was shown already; None: a new one is made.

    Raises:
        UsageError: the run directory holds a run already, or another training is writing there.
        DoesNotFitError: the run does not fit this machine, and `command.force` is not set.
        Interrupted: a signal stopped it; everything up to the last checkpoint is saved.
    """
    if config.fork is not None:
        return _train_fork(config, command)
    run_dir = RunDir(config.run_dir)
    refuse_existing_run(run_dir)
    game = load_game(config.game)
    for extension in EXTENSIONS:
        extension.check_new(config, game)
    report = report or _check_fit(config, game, command)
    warnings = _ask_storage(config, command)
    config = resolve_auto(config, game)
    run_dir.root.mkdir(parents=True, exist_ok=True)
    with run_dir.locked():
        refuse_existing_run(run_dir)  # again: another process may have written it meanwhile
        run_dir.remove_leftovers()
        cut_log(run_dir, None)
        restore_evaluations(run_dir, "", b"")
        for extension in EXTENSIONS:
            extension.begin_anew(run_dir)
        write_atomic(run_dir.config, dump_config(config))
        run = _Run(config, game, run_dir, command, report, warnings=warnings)
        return run.bring_to_its_end()


def _train_fork(config: RunConfig, command: TrainCommand) -> TrainingResult:
    """Make the fork's run directory, which appears complete or not at all, and resume it."""
    plan = plan_fork(config)
    report = _check_fit(plan.config, plan.game, command)
    _ask_storage(plan.config, command)
    event = make_fork(plan)
    for listener in command.listeners:
        listener(event)
    return resume(config.run_dir, command, report=report)


def resume(
    root: Path,
    command: TrainCommand,
    *,
    overrides: Sequence[str] = (),
    at: int | None = None,
    report: PreflightReport | None = None,
) -> TrainingResult:
    """Resume the run at `root` from its newest valid checkpoint.

    A run that ended before its first checkpoint begins again, with the same random numbers. One
    that has won, or is where the command would bring it, is left as it is; the result says so.

    Args:
        overrides: `key=value` texts, for keys that may change in a resumed run.
        at: timestep of the checkpoint to go back to; later ones are set aside. None: the newest.
        report: report of a preflight that was shown already; None: a new one is made.

    Raises:
        UsageError: there is no run, another training is writing there, or a key must not change.
        DoesNotFitError: the run does not fit this machine, and `command.force` is not set.
        CheckpointError: no checkpoint can be used.
    """
    run_dir = find_run(root)
    with run_dir.locked():
        run_dir.remove_leftovers()
        checkpoint, warnings = _found_checkpoint(run_dir, at, command)
        found = [*moved_game(run_dir, overrides), *overrides]
        config = load_config(run_dir.config, found, is_saved=True, more_checks=level_problems)
        config = config.model_copy(update={"run_dir": run_dir.root})  # it may have been moved
        game = load_game(config.game)
        changed: list[str] = []
        if checkpoint is not None:
            checkpoint.check_game(game)
            changed = changes(checkpoint.state, config, game)
        config = resolve_auto(config, game)
        asked = Asked(command.until, command.evaluates_at_end, bool(overrides), command.callbacks)
        ended = already_reached(run_dir, config, checkpoint, asked)
        if ended is not None:
            for listener in command.listeners:  # but not the run's event log
                listener(ended)
            frame_skip = config.env.frame_skip
            return TrainingResult(run_dir, ended.timesteps, frame_skip, {}, left_alone=ended.text)
        report = report or _check_fit(config, game, command)
        warnings += _ask_storage(config, command)
        moved = _bring_back(run_dir, checkpoint, at, warnings)
        write_atomic(run_dir.config, dump_config(config))
        run = _Run(config, game, run_dir, command, report, checkpoint, warnings, changed)
        return replace(run, set_aside=() if at is None else moved).bring_to_its_end()


def _found_checkpoint(
    run_dir: RunDir, at: int | None, command: TrainCommand
) -> tuple[Checkpoint | None, list[str]]:
    """As `find_checkpoint`; tell the listeners if that takes long, as there is no log yet."""

    def tell(seconds: float) -> None:
        event = StillWorking(text="verifying the checkpoint", seconds=round(seconds, 1))
        for listener in command.listeners:
            listener(event)

    with telling_if_slow(tell):
        return find_checkpoint(run_dir, at)


def _bring_back(
    run_dir: RunDir, checkpoint: Checkpoint | None, at: int | None, warnings: list[str]
) -> list[Path]:
    """Bring the run's files back to the checkpoint, or to the start; return what was moved away."""
    if checkpoint is None:
        warnings += begin_again(run_dir)
        return []
    moved = go_back_to(checkpoint, run_dir, run_dir.damaged if at is None else run_dir.set_aside)
    warnings += [f"a checkpoint was moved to {p}; delete it if you do not need it" for p in moved]
    return moved


def _check_fit(config: RunConfig, game: Game, command: TrainCommand) -> PreflightReport:
    return check_fit(
        config,
        game,
        force=command.force,
        show=command.show,
        measures_lake=command.measures_lake,
    )


def _ask_storage(config: RunConfig, command: TrainCommand) -> list[str]:
    """Return a warning if the run's storage cannot be reached; see `ask_once`."""
    if config.upload is None or not command.asks_storage:
        return []
    return ask_once(config.upload.to)


@dataclass(frozen=True)
class _Run:
    """A run whose lock this process holds.

    Attributes:
        warnings: warnings that were found before events could be emitted.
        changed: changes of config and game file since the checkpoint.
        set_aside: paths of later checkpoints, if the user took the run back to an earlier one.
    """

    config: RunConfig
    game: Game
    run_dir: RunDir
    command: TrainCommand
    report: PreflightReport
    checkpoint: Checkpoint | None = None
    warnings: Sequence[str] = ()
    changed: Sequence[str] = ()
    set_aside: Sequence[Path] = ()

    @property
    def _until(self) -> int:
        total = self.config.total_timesteps
        until = self.command.until
        return total if until is None else min(until, total)

    def bring_to_its_end(self) -> TrainingResult:
        """Train to the run's end, or as far as the command says."""
        self.run_dir.identity()
        write_atomic(self.run_dir.preflight, json.dumps(self.report.to_json(), indent=2))
        with EventFile(self.run_dir.events) as file:
            events = EventLog(file, self.command.listeners)
            stop = self.command.stop
            with (
                events.recording_failure(),
                uploading_run(self._upload_settings(), events, stop) as upload,
                logging_to_wandb(self.config, self.run_dir, events, stop),
            ):
                result = self._train(events, upload)
            if upload is not None:
                result = replace(result, not_stored=upload.nothing_stored())
            is_complete = result.evaluation is not None
            events.emit(
                Ended(
                    timesteps=result.timesteps,
                    reason="completed" if is_complete else "until",
                    exit_code=result.exit_code,
                    text="; ".join(filter(None, (result.ended_by, result.not_stored))),
                )
            )
        return result

    def _upload_settings(self) -> UploadSettings | None:
        begins_at = 0 if self.checkpoint is None else self.checkpoint.state.num_timesteps
        take_over = self.command.take_over
        return upload_settings(self.config, self.run_dir, begins_at=begins_at, take_over=take_over)

    def _train(self, events: EventLog, upload: BackgroundUpload | None) -> TrainingResult:
        footprint: FootprintComparison = {}
        frame_skip = self.config.env.frame_skip
        before = 0  # the peak of the part before
        if self.checkpoint is not None:
            before = measured_ram_peak_bytes(self.run_dir.footprint)
        with _measured(self.run_dir, self.report, footprint, at_least=before) as memory:
            timesteps, ended_by = self._learn(events, memory, upload)
            waited_frames = events.waited_frames.get(timesteps, 0)
            gc.collect()  # the algorithm has reference cycles, and evaluation reuses its memory
            is_at_end = bool(ended_by) or self._until >= self.config.total_timesteps
            if not (is_at_end and self.command.evaluates_at_end):
                return TrainingResult(
                    self.run_dir, timesteps, frame_skip, footprint, waited_frames=waited_frames
                )
            final = evaluate_best(self.run_dir, self.config, events, self.command.stop)
        return TrainingResult(
            self.run_dir,
            timesteps,
            frame_skip,
            footprint,
            final.evaluation,
            final.policy_name,
            final.video,
            ended_by=ended_by,
            waited_frames=waited_frames,
        )

    def _learn(
        self, events: EventLog, memory: PssSampler, upload: BackgroundUpload | None
    ) -> tuple[int, str]:
        """Train; return the timestep that is reached, and the condition that ended the run."""
        with training_process():
            self._announce(events)
            with TrainingSession(
                self.config,
                self.game,
                self.run_dir,
                checkpoint=self.checkpoint,
                events=events,
                stop=self.command.stop,
                memory=memory,
                extensions=[] if upload is None else [UploadExtension(upload)],
                callbacks=self.command.callbacks,
            ) as session:
                if session.missing_replay:
                    events.warn(
                        f"the replay lacks {session.missing_replay:,} timesteps that are not in "
                        "the Lake, so this run will not be bit for bit the same as without the "
                        "interruption"
                    )
                self._play_baselines(session, events)
                session.learn_until(self._until)
                session.save()
                return session.num_timesteps, session.ended_by

    def _play_baselines(self, session: TrainingSession, events: EventLog) -> None:
        """Play what the agent is compared with, when a run begins."""
        config = self.config
        if self.checkpoint is not None or not config.evaluation.baselines:
            return
        with events.telling_if_slow("playing baselines"), suppress(EvaluationInterrupted):
            found = play_baselines(
                session.evaluation_env,
                self.game.action_names,
                seed=evaluation_seed(config),
                stop=self.command.stop,
            )
            for baseline in found:
                events.emit(baseline.event())
            if not found:
                events.warn(
                    f"no episode of a baseline ended within {BASELINES_S:.0f} s; to compare with "
                    f"one, run game-rl evaluate {quote(str(self.run_dir.root))} --policy random"
                )

    def _announce(self, events: EventLog) -> None:
        identity = self.run_dir.identity()
        checkpoint = self.checkpoint
        if checkpoint is None:
            events.emit(begun(identity, self.config, self.game))
        else:
            places = [str(path.relative_to(self.run_dir.root)) for path in self.set_aside]
            events.emit(
                resumed(
                    identity,
                    self.config,
                    self.game,
                    checkpoint,
                    changed=self.changed,
                    set_aside=places,
                    not_restored=not_restored(
                        self.config, self.game, checkpoint, self.command.callbacks
                    ),
                )
            )
        for warning in (*self.warnings, *self.game.warnings):
            events.warn(warning)
        if self.game.reward_source is not None:
            events.warn(
                f"the reward is Python from {self.game.reward_source}, which runs with your rights"
            )
        for warning in announced_parts(self.config):
            events.warn(warning)


@contextmanager
def _measured(
    run_dir: RunDir, report: PreflightReport, footprint: FootprintComparison, *, at_least: int
) -> Iterator[PssSampler]:
    """Sample memory inside the block, and write footprint.json however it ends.

    The file compares the prediction with the measurement, as does `footprint`, which is updated.

    Args:
        at_least: peak in bytes that was measured before the block.
    """
    sampler = PssSampler()
    sampler.start()

    def write() -> None:
        peak_bytes = max(sampler.stop(), at_least)
        vram = report.footprint.vram
        vram_bytes = 0  # the most that torch's allocator has reserved of the network's GPU
        if vram is not None:
            vram_bytes = torch.cuda.max_memory_reserved(vram.gpu)
        footprint.update(
            compare_footprint(
                report,
                ram_peak_bytes=peak_bytes,
                disk_bytes=run_dir.size_bytes(),
                vram_reserved_bytes=vram_bytes,
            )
        )
        write_atomic(run_dir.footprint, json.dumps(footprint, indent=2))

    try:
        yield sampler
    except BaseException:
        with suppress(OSError):  # a failing disk has ended the block and is reported already
            write()
        raise
    try:
        write()
    except OSError as error:
        raise TrainingError(disk_fault(error, run_dir)) from error


@dataclass(frozen=True)
class FinalEvaluation:
    """The final evaluation of the best policy.

    Attributes:
        policy_name: name of the policy, for people.
        video: the clip, or None if none was recorded.
    """

    evaluation: Evaluation
    policy_name: str
    video: Path | None


def evaluate_best(
    run_dir: RunDir, config: RunConfig, events: EventLog, stop: StopRequest
) -> FinalEvaluation:
    """Play the best policy on episodes that were not used for any selection, and record it.

    An extension may choose which policy is the best: with a teacher, that of student and teacher.

    Raises:
        Interrupted: a stop was requested; everything is saved.
    """
    try:
        for extension in EXTENSIONS:
            extension.choose_best(run_dir, config, events, stop)
    except EvaluationInterrupted:
        raise _stopped(run_dir, stop) from None
    try:
        best = open_trained_run(run_dir.root, "best")
    except NoCheckpointError:  # it was imported with all its timesteps, so it had no evaluation
        best = open_trained_run(run_dir.root, "latest")
    timesteps = best.state.num_timesteps
    episodes = best.config.evaluation.final_episodes
    events.emit(
        Evaluating(
            timesteps=events.timesteps,
            policy_timesteps=timesteps,
            policy_waited_frames=best.state.waited_frames,
            episodes=episodes,
            is_final=True,
        )
    )
    try:
        trackers = episode_trackers(config, is_training=False)
        evaluation = evaluate_run(best, episodes=episodes, stop=stop, trackers=trackers)
    except EvaluationInterrupted:
        raise _stopped(run_dir, stop) from None
    for extension in EXTENSIONS:
        extension.log_final(best, config, evaluation, events)
    events.emit(
        evaluated_event(
            evaluation,
            timesteps=events.timesteps,
            policy_timesteps=timesteps,
            is_final=True,
        )
    )
    video: Path | None = None
    recording = best.config.recording
    if recording.episodes:
        output = best.run_dir.videos / f"best.{recording.format}"
        video = record_run(best, episodes=recording.episodes, output=output, max_s=recording.max_s)
        events.emit(Recorded(timesteps=events.timesteps, path=str(video)))
    return FinalEvaluation(evaluation, best.name, video)


def _stopped(run_dir: RunDir, stop: StopRequest) -> Interrupted:
    return stop.interrupted(
        f"{stop.reason}; the training is complete, and {run_dir.way_on} evaluates it"
    )
