"""All callbacks of a run, in the order in which they act."""

from collections.abc import Sequence
from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.epsilon_greedy import exploration_schedule
from game_rl.algorithms.mixed_replay import MixedReplay
from game_rl.algorithms.qdagger import Teacher
from game_rl.callbacks.boundary import StopCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback, NonFiniteCallback
from game_rl.callbacks.curves import (
    ExplorationRestartsCallback,
    GameMetricsCallback,
    ProgressCallback,
    WorkerRestartsCallback,
)
from game_rl.callbacks.evaluation import EvaluationGames, Values
from game_rl.callbacks.evaluation_callback import EvaluationCallback
from game_rl.callbacks.game_warnings import GameCheckCallback
from game_rl.callbacks.resources import TRIALS_S, CoresCallback, ResourceMonitorCallback
from game_rl.callbacks.stop_conditions import StopWhen
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.checkpoint_store import CheckpointStore
from game_rl.config.algorithms import DQNConfig, PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.event_log import EventLog
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_pool import LakePool
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.storage.background import BackgroundUpload
from game_rl.system.machine import effective_cpus, is_same_disk
from game_rl.system.process_memory import PssSampler
from game_rl.system.stop_request import StopRequest
from game_rl.training.lake_extension import LakeGrowthCallback
from game_rl.training.learning_extension import LakesFollowedCallback, RowsDrawnCallback
from game_rl.training.upload_extension import UploadCallback


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """Objects that the callbacks of one run share.

    Attributes:
        memory: samples the memory of this process and its workers.
        stop: request to end the run.
        events: event log of the run.
        feed: feed of the Lake that the run writes, if any.
        upload: upload of the run's checkpoints, if any.
        pool: Lakes from which the run learns, if any.
        mixed_replay: draws batches from these Lakes.
        values: returns that the policy expects, if evaluations compare them with the actual ones.
        teacher: gets the success rates of evaluations, if there is one.
        cores_trials_s: see CoresCallback.
    """

    config: RunConfig
    run_dir: RunDir
    memory: PssSampler
    stop: StopRequest
    events: EventLog
    feed: LakeFeed | None
    upload: BackgroundUpload | None = None
    pool: LakePool | None = None
    mixed_replay: MixedReplay | None = None
    values: Values | None = None
    teacher: Teacher | None = None
    cores_trials_s: float = TRIALS_S

    @property
    def rhythm(self) -> tuple[int, ...]:
        """`every_timesteps` of callbacks that are too slow for each boundary of DQN.

        It is empty for the other algorithms, whose callbacks act at each boundary.
        """
        is_dqn = isinstance(self.config.algorithm, DQNConfig)
        return (FREQUENT_BOUNDARIES_TIMESTEPS,) if is_dqn else ()


@dataclass(frozen=True)
class Callbacks:
    """The list of callbacks for SB3, and those of them that the session uses directly."""

    all: CallbackList
    checkpoints: CheckpointCallback
    cores: CoresCallback
    evaluation: EvaluationCallback
    stop: StopCallback


def make_callbacks(
    parts: RunParts,
    *,
    evaluation_env: VecEnv,
    fixed: CheckpointState,
    more: Sequence[BaseCallback] = (),
) -> Callbacks:
    """Build the callbacks of a run.

    Args:
        fixed: the values that all checkpoints of the run have in common.
        more: callbacks that are called before all others.
    """
    checkpoints = _checkpoints(parts, fixed)
    cores = CoresCallback(effective_cpus(), trials_s=parts.cores_trials_s)
    evaluation = _evaluation(parts, evaluation_env, checkpoints)
    stop = StopCallback(
        parts.stop, parts.events, has_won=lambda: bool(checkpoints.stop_counters.met)
    )
    growth = [] if parts.feed is None else [_lake_growth(parts, parts.feed, checkpoints)]
    uploads = [] if parts.upload is None else [UploadCallback(parts.upload, parts.rhythm)]
    in_order: list[BaseCallback] = [
        *more,
        GameCheckCallback(evaluation_env, parts.events),
        # first: a broken network must not even be evaluated
        NonFiniteCallback(every_timesteps=parts.rhythm),
        cores,
        *_exploration_restarts(parts, fixed),
        GameMetricsCallback(),
        *growth,
        *_lakes_followed(parts),
        *_rows_drawn(parts),
        *uploads,
        _resource_monitor(parts, checkpoints),  # before the checkpoint, which it may request
        WorkerRestartsCallback(parts.events),
        evaluation,  # before the checkpoint, which records the best
        checkpoints,
        ProgressCallback(parts.events, every_timesteps=parts.rhythm),
        stop,  # last: all others must have acted at the boundary at which it stops
    ]
    return Callbacks(CallbackList(in_order), checkpoints, cores, evaluation, stop)


def _checkpoints(parts: RunParts, fixed: CheckpointState) -> CheckpointCallback:
    settings = parts.config.checkpoints
    store = CheckpointStore(
        parts.run_dir,
        keep_last=settings.keep_last,
        keep_every_timesteps=settings.keep_every_timesteps,
        with_replay=settings.save_replay_buffer,
        feed=parts.feed,
        held=set if parts.upload is None else parts.upload.held,
        pool=parts.pool,
    )
    return CheckpointCallback(
        store, parts.stop, parts.events, every_timesteps=settings.every_timesteps, fixed=fixed
    )


def _evaluation(
    parts: RunParts, vec_env: VecEnv, checkpoints: CheckpointCallback
) -> EvaluationCallback:
    games, conditions = make_games(parts, vec_env), parts.config.stop_when
    stop_when = None
    if conditions is not None:
        stop_when = StopWhen(conditions, games, seed=parts.config.seed, events=parts.events)
    return EvaluationCallback(
        games,
        checkpoints,
        parts.run_dir,
        parts.events,
        every_timesteps=parts.config.evaluation.every_timesteps,
        on_evaluated=None if parts.teacher is None else parts.teacher.note_evaluation,
        stop_when=stop_when,
    )


def make_games(parts: RunParts, vec_env: VecEnv) -> EvaluationGames:
    """Build the games that every evaluation of the run plays."""
    config = parts.config
    return EvaluationGames(
        vec_env=vec_env,
        episodes=config.evaluation.episodes,
        ways=config.evaluation_ways,
        seed=evaluation_seed(config),
        stop=parts.stop,
        values=parts.values,
    )


def _exploration_restarts(
    parts: RunParts, fixed: CheckpointState
) -> list[ExplorationRestartsCallback]:
    algorithm = parts.config.algorithm
    if isinstance(algorithm, PPOConfig) or not algorithm.exploration.restarts:
        return []
    epsilon = exploration_schedule(algorithm.exploration, timesteps=fixed.schedule_timesteps)
    return [ExplorationRestartsCallback(epsilon, parts.events, parts.run_dir)]


def evaluation_seed(config: RunConfig) -> int:
    """Return the seed of the games that evaluations during training play."""
    chosen = config.evaluation.seed
    return seed_for(config.seed, "evaluation") if chosen is None else chosen


def _resource_monitor(parts: RunParts, checkpoints: CheckpointCallback) -> ResourceMonitorCallback:
    return ResourceMonitorCallback(
        parts.memory,
        parts.stop,
        checkpoints,
        run_dir=parts.run_dir.root,
        events=parts.events,
        every_timesteps=parts.rhythm,
    )


def _lakes_followed(parts: RunParts) -> list[LakesFollowedCallback]:
    if parts.pool is None or parts.pool.following is None or parts.mixed_replay is None:
        return []
    return [
        LakesFollowedCallback(
            parts.mixed_replay, parts.pool.following, parts.events, every_timesteps=parts.rhythm
        )
    ]


def _rows_drawn(parts: RunParts) -> list[RowsDrawnCallback]:
    if parts.mixed_replay is None:
        return []
    return [RowsDrawnCallback(parts.mixed_replay, parts.events, every_timesteps=parts.rhythm)]


def _lake_growth(
    parts: RunParts, feed: LakeFeed, checkpoints: CheckpointCallback
) -> LakeGrowthCallback:
    def reserved_bytes() -> int:
        is_same = is_same_disk(feed.lake.path, parts.run_dir.root)
        return checkpoints.expected_bytes if is_same else 0

    limit = feed.lake.capacity
    return LakeGrowthCallback(
        feed,
        total_timesteps=parts.config.total_timesteps,
        most_transitions=limit.transitions,
        most_bytes=limit.n_bytes,
        reserved_bytes=reserved_bytes,
        events=parts.events,
        every_timesteps=parts.rhythm,
    )
