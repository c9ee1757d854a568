"""All extensions and callbacks of a run, in the order in which they act."""

import itertools
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from game_rl.callbacks.boundary import StopCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback, NonFiniteCallback
from game_rl.callbacks.curves import (
    ExplorationRestartsCallback,
    GameCheckCallback,
    GameMetricsCallback,
    ProgressCallback,
    WaitedFramesCallback,
    WorkerRestartsCallback,
)
from game_rl.callbacks.evaluation import Evaluation
from game_rl.callbacks.evaluation_callback import EvaluationCallback
from game_rl.callbacks.hints import HintsCallback, hint_settings
from game_rl.callbacks.milestones import MilestonesCallback
from game_rl.callbacks.resource_watch import PlanWatch, ResourceWatch
from game_rl.callbacks.resources import CoresCallback, ResourceMonitorCallback
from game_rl.callbacks.stop_conditions import StopWhen
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_store import CheckpointStore
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.games.definition import Game
from game_rl.system.machine import effective_cpus
from game_rl.training.extension import Extension, GivenCallback, RunParts
from game_rl.training.extensions.curiosity_extension import CuriosityExtension
from game_rl.training.extensions.custom_callbacks_extension import CustomCallbacksExtension
from game_rl.training.extensions.episodes_extension import EpisodesExtension
from game_rl.training.extensions.lake_extension import LakeExtension
from game_rl.training.extensions.learning_extension import LearningExtension
from game_rl.training.extensions.live_extension import LiveExtension
from game_rl.training.extensions.monitor_extension import MonitorExtension
from game_rl.training.extensions.novelty_extension import NoveltyExtension
from game_rl.training.extensions.places_extension import PlacesExtension
from game_rl.training.extensions.played_extension import PlayedExtension
from game_rl.training.extensions.pool_extension import PoolExtension
from game_rl.training.extensions.potentials_extension import PotentialsExtension
from game_rl.training.extensions.teacher_extension import TeacherExtension

EXTENSIONS: tuple[type[Extension], ...] = (
    LearningExtension,
    TeacherExtension,  # measured before the Lake is opened
    PlayedExtension,
    LakeExtension,
    MonitorExtension,
    PlacesExtension,
    PoolExtension,
    PotentialsExtension,
    NoveltyExtension,
    CuriosityExtension,
    EpisodesExtension,
    CustomCallbacksExtension,
    LiveExtension,
)
"""All features of a run, in the order in which they are built."""


def make_extensions(parts: RunParts, more: Sequence[Extension]) -> tuple[Extension, ...]:
    """Build the run's extensions; return them in the order in which their callbacks act.

    If one cannot be built, those before it are closed.

    Args:
        more: extensions that whoever trains the run has built; they come last.
    """
    own = []
    with ExitStack() as stack:
        for kind in EXTENSIONS:
            with parts.events.telling_if_slow(kind.opening):
                found = kind.of(parts)
            if found is not None:
                own.append(stack.enter_context(closing(found)))
        stack.pop_all()
    own.sort(key=lambda extension: not extension.acts_first)
    return (*own, *more)


def not_restored(
    config: RunConfig,
    game: Game,
    checkpoint: Checkpoint,
    given_callbacks: Sequence[GivenCallback],
) -> list[str]:
    """Return what of its features a resume does not restore, each with the reason."""
    return [
        text
        for kind in EXTENSIONS
        for text in kind.not_restored(config, game, checkpoint, given_callbacks)
    ]


def episode_trackers(config: RunConfig, *, is_training: bool) -> list[TrackerMaker]:
    """Return what follows episodes for the extensions; see `Extension.trackers`."""
    found = (kind.trackers(config, is_training=is_training) for kind in EXTENSIONS)
    return list(itertools.chain.from_iterable(found))


@dataclass(frozen=True)
class Callbacks:
    """The list of callbacks for SB3, and those of them that the session uses directly."""

    all: CallbackList
    checkpoints: CheckpointCallback
    cores: CoresCallback
    evaluation: EvaluationCallback
    hints: HintsCallback
    stop: StopCallback


def make_callbacks(
    parts: RunParts, extensions: Sequence[Extension], more: Sequence[BaseCallback] = ()
) -> Callbacks:
    """Build the callbacks of a run.

    Args:
        more: callbacks that are called before all others but the counter of waited frames.
    """
    waited = _waited_frames(parts)
    checkpoints = _checkpoints(parts, extensions, waited)
    cores = CoresCallback(effective_cpus(), trials_s=parts.cores_trials_s)
    evaluation = _evaluation(parts, extensions, checkpoints)
    hints = _hints(parts, extensions)
    stop = StopCallback(parts.stop, parts.events, has_won=checkpoints.has_won)
    in_order: list[BaseCallback] = [
        *([] if waited is None else [waited]),
        *more,
        GameCheckCallback(parts.evaluation_env, parts.events),
        # first: a broken network must not even be evaluated
        NonFiniteCallback(every_timesteps=parts.rhythm),
        cores,
        *_exploration_restarts(parts),
        GameMetricsCallback(parts.game.definition.endings),
        MilestonesCallback(parts.events, parts.run_dir, checkpoints),
        *(each for found in extensions for each in found.callbacks(parts, checkpoints)),
        _resource_monitor(parts, checkpoints),  # before the checkpoint, which it may request
        WorkerRestartsCallback(parts.events),
        evaluation,  # before the checkpoint, which records the best
        hints,  # before the checkpoint, so that a resume gives no hint twice
        checkpoints,
        ProgressCallback(parts.events, every_timesteps=parts.rhythm),
        stop,  # last of ours: they must have acted at the boundary at which it stops
        # after it: what begins a rollout for them is not in a checkpoint, and a resume repeats it
        *(each for found in extensions for each in found.last_callbacks(checkpoints)),
    ]
    return Callbacks(CallbackList(in_order), checkpoints, cores, evaluation, hints, stop)


def _waited_frames(parts: RunParts) -> WaitedFramesCallback | None:
    before = 0 if parts.checkpoint is None else parts.checkpoint.state.waited_frames
    if parts.game.definition.step is None and not before:
        return None
    frame_skip = parts.config.env.frame_skip
    return WaitedFramesCallback(parts.events, frame_skip=frame_skip, before=before)


def _checkpoints(
    parts: RunParts, extensions: Sequence[Extension], waited: WaitedFramesCallback | None
) -> CheckpointCallback:
    settings = parts.config.checkpoints
    store = CheckpointStore(
        parts.run_dir,
        keep_last=settings.keep_last,
        keep_every_timesteps=settings.keep_every_timesteps,
        with_replay=settings.save_replay_buffer,
        companions=extensions,
    )
    return CheckpointCallback(
        store,
        parts.stop,
        parts.events,
        every_timesteps=settings.every_timesteps,
        fixed=parts.fixed,
        waited=waited,
    )


def _evaluation(
    parts: RunParts, extensions: Sequence[Extension], checkpoints: CheckpointCallback
) -> EvaluationCallback:
    games = parts.games(extensions)
    conditions = parts.config.stop_when
    stop_when = None
    if conditions is not None:
        stop_when = StopWhen(conditions, games, seed=parts.config.seed, events=parts.events)

    def on_evaluated(success_rate: float | None) -> None:
        for extension in extensions:
            extension.on_evaluated(success_rate)

    def on_played(played: Sequence[Evaluation], timesteps: int) -> None:
        for extension in extensions:
            extension.on_played(played, timesteps)

    return EvaluationCallback(
        games,
        checkpoints,
        parts.run_dir,
        parts.events,
        every_timesteps=parts.config.evaluation.every_timesteps,
        on_evaluated=on_evaluated,
        on_played=on_played,
        stop_when=stop_when,
    )


def _exploration_restarts(parts: RunParts) -> list[ExplorationRestartsCallback]:
    exploration = parts.config.algorithm.exploration
    if exploration is None or not exploration.restarts:
        return []
    epsilon = exploration.schedule(timesteps=parts.fixed.schedule_timesteps)
    return [ExplorationRestartsCallback(epsilon, parts.events, parts.run_dir)]


def _hints(parts: RunParts, extensions: Sequence[Extension]) -> HintsCallback:
    def showing(curve: str) -> int | None:
        found = (extension.showing(curve) for extension in extensions)
        return next((number for number in found if number is not None), None)

    return HintsCallback(
        parts.events,
        parts.run_dir,
        hint_settings(parts.config, parts.game),
        showing=showing,
        every_timesteps=parts.rhythm,
    )


def _resource_monitor(parts: RunParts, checkpoints: CheckpointCallback) -> ResourceMonitorCallback:
    thresholds = parts.config.monitoring
    watch = ResourceWatch(
        parts.run_dir,
        parts.events,
        warn_disk_gb=thresholds.warn_disk_gb,
        warn_ram_gb=thresholds.warn_ram_gb,
    )
    return ResourceMonitorCallback(
        parts.memory,
        parts.stop,
        checkpoints,
        run_dir=parts.run_dir.root,
        watch=watch,
        plan=PlanWatch(parts.run_dir, parts.events),
        every_timesteps=parts.rhythm,
    )
