"""A training from its config to its footprint: the one place that decides the order of things."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.make_algorithm import find_device, make_algorithm
from game_rl.algorithms.networks import find_precision
from game_rl.callbacks.evaluation import Evaluation
from game_rl.callbacks.make_callbacks import Callbacks, make_callbacks
from game_rl.callbacks.non_finite import check_finite
from game_rl.checkpoints.checkpoint import Checkpoint, CheckpointState
from game_rl.checkpoints.log import closing_log, cut_log, quiet_log_thread
from game_rl.checkpoints.store import newest_valid_checkpoint, set_aside_newer
from game_rl.checkpoints.versions import computing, installed_versions
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.errors import (
    DoesNotFitError,
    Interrupted,
    TrainingError,
    UsageError,
    system_fault,
)
from game_rl.games.definition import Game, load_game
from game_rl.lake.feed import LakeFeed
from game_rl.playback.evaluate import evaluate_run
from game_rl.playback.policy import TrainedRun, find_run, open_trained_run
from game_rl.playback.record import record_run
from game_rl.preflight.preflight import preflight
from game_rl.preflight.report import FootprintComparison, Report, compare_footprint, render_report
from game_rl.run_dir import RunDir, write_atomic
from game_rl.seeds import seed_for
from game_rl.system.machine import detect_machine, effective_cpus
from game_rl.system.process_memory import PssSampler
from game_rl.system.threads import torch_threads
from game_rl.training.resuming import changes, differences, usable_best
from game_rl.training.run_lake import open_feed, refill
from game_rl.vec_env.make_vec_env import make_training_env, make_vec_env


@dataclass(frozen=True)
class TrainingResult:
    """What a finished training has to show."""

    run_dir: RunDir
    evaluation: Evaluation
    best_timesteps: int
    video: Path | None
    footprint: FootprintComparison


def train(config: RunConfig, *, force: bool, console: Console) -> TrainingResult:
    """Start a new run.

    Raises:
        UsageError: the run directory holds a run already, or another training is writing there.
        DoesNotFitError: the preflight says so, and `force` is False.
        Interrupted: by a signal; everything up to the last checkpoint is saved.
    """
    run_dir = RunDir(config.run_dir)
    _refuse_existing_run(run_dir)
    game = load_game(config.game)
    report = _check_fit(config, game, force=force, console=console)
    run_dir.root.mkdir(parents=True, exist_ok=True)
    with run_dir.locked():
        _refuse_existing_run(run_dir)  # it may have come meanwhile
        run_dir.remove_leftovers()
        cut_log(run_dir.tensorboard, None)
        write_atomic(run_dir.config, dump_config(config))
        return _run(config, game, run_dir, report, console=console, checkpoint=None)


def resume(
    root: Path, *, overrides: Sequence[str] = (), force: bool, console: Console
) -> TrainingResult:
    """Go on with the run at `root` from its newest checkpoint that verifies.

    A run that was ended before its first checkpoint begins again, with the same random numbers.

    Args:
        root: the run's directory.
        overrides: `key=value`, for keys that may change while a run goes on.
        force: go on even if it does not fit.
        console: where warnings and progress go.

    Raises:
        UsageError: there is no run, another training is writing there, or a key must not change.
        CheckpointError: no checkpoint can be used.
    """
    run_dir = find_run(root)
    with run_dir.locked():
        run_dir.remove_leftovers()
        checkpoint = _newest_checkpoint(run_dir, console)
        config = load_config(run_dir.config, overrides, is_saved=True)
        config = config.model_copy(update={"run_dir": run_dir.root})  # it may have been moved
        game = load_game(config.game)
        if checkpoint is not None:
            checkpoint.check_game(game)
            for change in changes(checkpoint.state, config, game):
                console.print("[yellow]changed:[/]", escape(change))
        report = _check_fit(config, game, force=force, console=console)
        _go_back_to(checkpoint, run_dir, config, console)
        write_atomic(run_dir.config, dump_config(config))
        return _run(config, game, run_dir, report, console=console, checkpoint=checkpoint)


def _newest_checkpoint(run_dir: RunDir, console: Console) -> Checkpoint | None:
    """The one that verifies; None if the run has never saved."""
    if not run_dir.checkpoints_newest_first():
        return None
    checkpoint, damaged = newest_valid_checkpoint(run_dir)
    for error in damaged:
        console.print("[yellow]warning:[/]", escape(str(error)))
    return checkpoint


def _go_back_to(
    checkpoint: Checkpoint | None, run_dir: RunDir, config: RunConfig, console: Console
) -> None:
    """Take back what the run wrote after the checkpoint, or all of it."""
    if checkpoint is None:
        console.print("there is no checkpoint yet: the run begins again")
        run_dir.evaluations.unlink(missing_ok=True)
        cut_log(run_dir.tensorboard, None)
        return
    timesteps = checkpoint.state.num_timesteps
    for path in set_aside_newer(run_dir, timesteps):
        console.print(f"moved to {path}; delete it if nothing in it is of use")
    checkpoint.restore_reports(run_dir)
    console.print(f"resuming from timestep {timesteps:,} ({checkpoint.path})")
    with torch_threads(effective_cpus()):
        found = differences(checkpoint.state, find_device(config.device))
    for difference in found:
        console.print("[yellow]not bit for bit as without the break:[/]", escape(difference))


def _refuse_existing_run(run_dir: RunDir) -> None:
    """What was learned is never overwritten; a run that ended before its first update may be."""
    checkpoints = run_dir.checkpoints_newest_first()
    if checkpoints:
        raise UsageError(
            f"{run_dir.root} already holds a run at timestep {int(checkpoints[0].name):,}; "
            f"continue it with --resume {run_dir.root}, choose another place with "
            "--set run_dir=..., or delete it"
        )


def _check_fit(config: RunConfig, game: Game, *, force: bool, console: Console) -> Report:
    report = preflight(config, game, detect_machine(config.run_dir))
    console.print(render_report(report))
    if report.verdict == "does_not_fit" and not force:
        raise DoesNotFitError(
            "the run does not fit this machine; apply a fix above, or try all the same with --force"
        )
    return report


def _run(
    config: RunConfig,
    game: Game,
    run_dir: RunDir,
    report: Report,
    *,
    console: Console,
    checkpoint: Checkpoint | None,
) -> TrainingResult:
    write_atomic(run_dir.preflight, json.dumps(report.to_json(), indent=2))
    footprint: FootprintComparison = {}
    with _measured(run_dir, report, footprint) as sampler:
        _learn(config, game, run_dir, sampler=sampler, console=console, checkpoint=checkpoint)
        best = open_trained_run(run_dir.root, "best")
        episodes = config.evaluation.final_episodes
        console.print(
            f"evaluating the best policy (timestep {best.state.num_timesteps:,}) "
            f"over {episodes} episodes"
        )
        evaluation = evaluate_run(best, episodes=episodes)
        video = _record(best)
    return TrainingResult(run_dir, evaluation, best.state.num_timesteps, video, footprint)


@contextmanager
def _measured(
    run_dir: RunDir, report: Report, footprint: FootprintComparison
) -> Iterator[PssSampler]:
    """Watch memory inside; write predicted against measured however the block ends."""
    sampler = PssSampler()
    sampler.start()

    def write() -> None:
        peak_bytes = sampler.stop()
        footprint.update(
            compare_footprint(report, ram_peak_bytes=peak_bytes, disk_bytes=run_dir.size_bytes())
        )
        write_atomic(run_dir.footprint, json.dumps(footprint, indent=2))

    try:
        yield sampler
    except BaseException:
        with suppress(OSError):  # a disk that fails has ended the block, and is told of by that
            write()
        raise
    try:
        write()
    except OSError as error:
        raise TrainingError(_disk_fault(error, run_dir)) from error


def _learn(
    config: RunConfig,
    game: Game,
    run_dir: RunDir,
    *,
    sampler: PssSampler,
    console: Console,
    checkpoint: Checkpoint | None,
) -> None:
    """Train up to `total_timesteps`; everything that it starts is closed when it returns."""
    with ExitStack() as stack:
        # the first weights, too, depend on how many threads compute them
        stack.enter_context(torch_threads(effective_cpus()))
        stack.enter_context(quiet_log_thread())
        vec_env = stack.enter_context(closing(_training_env(config, game)))
        evaluation_env = stack.enter_context(closing(_evaluation_env(config, game)))
        packing = make_frame_format(config.env.observation, game).packing
        model = make_algorithm(
            config,
            vec_env,
            run_dir,
            packing=packing,
            stream="algorithm",
            schedule_timesteps=None if checkpoint is None else checkpoint.state.schedule_timesteps,
        )
        stack.enter_context(closing_log(model.logger))
        feed = open_feed(config, run_dir, model, packing, checkpoint=checkpoint, console=console)
        if feed is not None:
            stack.enter_context(closing(feed))
        console.print(_precision_note(config))
        callbacks = make_callbacks(
            config,
            run_dir,
            evaluation_env=evaluation_env,
            fixed=_fixed_state(config, game, model, checkpoint),
            sampler=sampler,
            console=console,
            feed=feed,
        )
        if checkpoint is not None:
            _restore(model, checkpoint, config, feed=feed, console=console)
            callbacks.checkpoints.best = usable_best(run_dir, checkpoint.state, console)
        missing = config.total_timesteps - model.num_timesteps
        if missing > 0:
            _learn_for(missing, model, callbacks, run_dir)
    if callbacks.stop.reason is not None:
        raise callbacks.stop.reason


def _precision_note(config: RunConfig) -> str:
    wanted, device = config.algorithm.precision, find_device(config.device)
    found = find_precision(wanted, device)
    why = f" (auto: what {device} is fastest in)" if wanted == "auto" else ""
    return f"the network multiplies in {found}{why}"


def _training_env(config: RunConfig, game: Game) -> VecEnv:
    seed = seed_for(config.seed, "training_env")
    return make_training_env(config.env, game, seed=seed)


def _evaluation_env(config: RunConfig, game: Game) -> VecEnv:
    n_envs = min(config.evaluation.n_envs, config.evaluation.episodes)
    seed = seed_for(config.seed, "evaluation")
    return make_vec_env(config.env, game, n_envs=n_envs, seed=seed)


def _learn_for(timesteps: int, model: BaseAlgorithm, callbacks: Callbacks, run_dir: RunDir) -> None:
    try:
        model.learn(timesteps, callback=callbacks.all, reset_num_timesteps=False)
    except KeyboardInterrupt:
        reason = callbacks.stop.reason
        code = reason.exit_code if reason is not None else Interrupted("").exit_code
        raise Interrupted(f"stopped at once; {_saved(run_dir)}", exit_code=code) from None
    except ValueError:
        # an evaluation's Categorical refuses NaN logits with a ValueError of many lines
        check_finite(model.policy, model.num_timesteps)
        raise
    except OSError as error:
        raise TrainingError(_disk_fault(error, run_dir)) from error
    finally:
        callbacks.progress.close()
        callbacks.stop.release_signals()
    reason = callbacks.stop.reason
    if isinstance(reason, Interrupted):
        raise Interrupted(f"{reason}; {_saved(run_dir)}", exit_code=reason.exit_code)


def _disk_fault(error: OSError, run_dir: RunDir) -> str:
    if not run_dir.root.is_dir():
        return f"the run directory {run_dir.root} is gone, and what was learned with it"
    return f"{system_fault(error, run_dir.root)}; {_saved(run_dir)}"


def _saved(run_dir: RunDir) -> str:
    """What is left of a run that ended early, and the way on."""
    checkpoints = run_dir.checkpoints_newest_first()
    if not checkpoints:
        return f"nothing was saved yet; begin again with --resume {run_dir.root}"
    return (
        f"saved up to timestep {int(checkpoints[0].name):,}; continue with --resume {run_dir.root}"
    )


def _fixed_state(
    config: RunConfig, game: Game, model: BaseAlgorithm, checkpoint: Checkpoint | None
) -> CheckpointState:
    """What all checkpoints of this run have in common."""
    return CheckpointState(
        num_timesteps=0,
        n_updates=0,
        schedule_timesteps=(
            config.total_timesteps if checkpoint is None else checkpoint.state.schedule_timesteps
        ),
        best=None,
        rom_sha256=game.rom.sha256,
        config=config.model_dump(mode="json"),
        game=game.definition.model_dump(mode="json", by_alias=True),
        versions=installed_versions(),
        computing=computing(str(model.device)),
    )


def _restore(
    model: BaseAlgorithm,
    checkpoint: Checkpoint,
    config: RunConfig,
    *,
    feed: LakeFeed | None,
    console: Console,
) -> None:
    if feed is not None:
        refill(model, feed, checkpoint, console)
    if not checkpoint.restore(model):
        if feed is not None:
            feed.leave_gap()
        assert model.env is not None
        # not the episodes of the run's beginning again
        stream = f"training_env/{checkpoint.state.num_timesteps}"
        model.env.seed(seed_for(config.seed, stream))


def _record(best: TrainedRun) -> Path | None:
    recording = best.config.recording
    if recording.episodes == 0:
        return None
    output = best.run_dir.videos / f"best.{recording.format}"
    return record_run(best, episodes=recording.episodes, output=output)
