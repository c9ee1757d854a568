"""The callbacks of a run, all of them, in the order in which they act."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.checkpoint import CheckpointCallback
from game_rl.callbacks.cores import CoresCallback
from game_rl.callbacks.evaluation import EvaluationCallback
from game_rl.callbacks.game_metrics import GameMetricsCallback
from game_rl.callbacks.lake_growth import LakeGrowthCallback
from game_rl.callbacks.non_finite import NonFiniteCallback
from game_rl.callbacks.progress import ProgressCallback
from game_rl.callbacks.resource_monitor import ResourceMonitorCallback
from game_rl.callbacks.stop import StopCallback
from game_rl.callbacks.worker_restarts import WorkerRestartsCallback
from game_rl.checkpoints.checkpoint import CheckpointState
from game_rl.checkpoints.store import CheckpointStore
from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.lake.feed import LakeFeed
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.machine import effective_cpus, is_same_disk
from game_rl.system.process_memory import PssSampler

_DQN_CHECKS_EVERY_TIMESTEPS = 1_000


@dataclass(frozen=True)
class Callbacks:
    """The list for SB3, and those of its members that the composition root asks afterwards."""

    all: CallbackList
    checkpoints: CheckpointCallback
    stop: StopCallback
    progress: ProgressCallback


def make_callbacks(
    config: RunConfig,
    run_dir: RunDir,
    *,
    evaluation_env: VecEnv,
    fixed: CheckpointState,
    sampler: PssSampler,
    console: Console,
    feed: LakeFeed | None,
) -> Callbacks:
    def warn(text: str) -> None:
        warn_on(console, text)

    stop = StopCallback(deadline_s=config.checkpoints.deadline_s, notify=console.print)
    store = CheckpointStore(
        run_dir,
        keep_last=config.checkpoints.keep_last,
        keep_every_timesteps=config.checkpoints.keep_every_timesteps,
        with_replay=config.checkpoints.save_replay_buffer,
        feed=feed,
    )
    checkpoints = CheckpointCallback(
        store, stop, every_timesteps=config.checkpoints.every_timesteps, fixed=fixed
    )
    evaluation = EvaluationCallback(
        evaluation_env,
        checkpoints,
        run_dir,
        every_timesteps=config.evaluation.every_timesteps,
        episodes=config.evaluation.episodes,
        deterministic=config.evaluation.deterministic,
        seed=seed_for(config.seed, "evaluation"),
    )
    progress = ProgressCallback(console, evaluation, total_timesteps=config.total_timesteps)
    monitor = ResourceMonitorCallback(
        sampler,
        stop,
        checkpoints,
        run_dir=run_dir.root,
        warn=warn,
        every_timesteps=_rhythm(config),
    )
    growth = [] if feed is None else [_lake_growth(config, feed, checkpoints, run_dir, warn)]
    return Callbacks(
        all=CallbackList(
            [
                *loop_callbacks(config, CoresCallback(effective_cpus())),
                *growth,
                monitor,  # before the checkpoint, as it may ask for one
                WorkerRestartsCallback(warn=warn),
                evaluation,  # before the checkpoint, which carries the best reward
                checkpoints,
                progress,
                stop,  # after the checkpoint, which it waits for
            ]
        ),
        checkpoints=checkpoints,
        stop=stop,
        progress=progress,
    )


def loop_callbacks(config: RunConfig, cores: CoresCallback) -> list[BaseCallback]:
    """Those that take their part of the time of vec steps and updates."""
    return [
        # first: what is broken is not even evaluated
        NonFiniteCallback(every_timesteps=_rhythm(config)),
        cores,
        GameMetricsCallback(),
    ]


def _lake_growth(
    config: RunConfig,
    feed: LakeFeed,
    checkpoints: CheckpointCallback,
    run_dir: RunDir,
    warn: Callable[[str], None],
) -> LakeGrowthCallback:
    def reserved_bytes() -> int:
        return checkpoints.expected_bytes if is_same_disk(path, run_dir.root) else 0

    path, limit = feed.lake.path, feed.lake.capacity
    return LakeGrowthCallback(
        feed,
        total_timesteps=config.total_timesteps,
        most_transitions=limit.transitions,
        most_bytes=limit.n_bytes,
        reserved_bytes=reserved_bytes,
        warn=warn,
        every_timesteps=_rhythm(config),
    )


def warn_on(console: Console, text: str) -> None:
    """What a user should know, whatever characters are in it."""
    console.print("[yellow]warning:[/]", escape(text))


def _rhythm(config: RunConfig) -> tuple[int, ...]:
    """Of what is too slow for each boundary of DQN; empty: at each boundary."""
    return (_DQN_CHECKS_EVERY_TIMESTEPS,) if isinstance(config.algorithm, DQNConfig) else ()
