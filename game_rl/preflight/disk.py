"""The run directory over the whole run."""

from bisect import bisect_left

from game_rl.checkpoints import size
from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.lake.stored_view import TABLE_BYTES
from game_rl.preflight import calibration
from game_rl.preflight.arithmetic import TrainingArithmetic
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import DiskFootprint, Footprint, Part
from game_rl.preflight.kept_checkpoints import KeptCheckpoints
from game_rl.preflight.learning import offline_of, takes_gradient_steps
from game_rl.preflight.memory import n_pictures, network_of, saved_replay_bytes

_COUNTED_CHECKPOINTS = 64  # one by one
_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves so often


def disk_footprint(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> DiskFootprint:
    checkpoint = checkpoint_bytes(config, facts)
    retention = _retention(config, training)
    kept = retention.after(training.updates)
    logs = _tensorboard_bytes(config, facts, training) + _event_bytes(config, training)
    logs += _evaluation_bytes(config, training, copies=kept)
    saved = _newest_bytes(config, facts, training, kept, at=training.updates)
    parts = (
        Part(f"{kept} checkpoint{'s' if kept > 1 else ''}", saved),
        Part("TensorBoard, events and tables", logs + calibration.RUN_FILES_BYTES),
        *_teacher(config, facts),
        Part("clip", _clip_bytes(config, facts)),
        *_parent_parts(facts),
        *_offline_checkpoints(config, facts, training),
    )
    return DiskFootprint(
        parts=parts,
        checkpoint_bytes=checkpoint,
        momentary_bytes=(retention.at_once(training.updates) - kept) * checkpoint
        + _held_bytes(config, checkpoint)
        + _lake_tables(facts),
        log_bytes_per_update=logs / training.updates,
    )


def _held_bytes(config: RunConfig, checkpoint: int) -> int:
    """Of a checkpoint that is being uploaded and its best one, which stay until that has ended."""
    if config.upload is None:
        return 0
    return min(2 * checkpoint, round(config.upload.backlog_gb * 1e9))


def _parent_parts(facts: RunFacts) -> tuple[Part, ...]:
    """What a fork has of its parent from its first moment."""
    if facts.fork is None:
        return ()
    kind = "linked" if facts.fork.is_linked else "copied"
    return (
        Part("the parent's curves and tables", facts.fork.copied_bytes),
        Part(f"the parent's checkpoint and Lake, {kind}", facts.fork.new_shared_bytes),
    )


def _lake_tables(facts: RunFacts) -> int:
    """Of files without a name, which go with the process: one, and a new one sorted beside it."""
    return 3 * facts.learned_lakes.blocks * TABLE_BYTES


def _offline_checkpoints(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> tuple[Part, ...]:
    """What learning before the first timestep leaves: its best, and the one that it ends with."""
    if not training.offline_gradient_steps:
        return ()
    each = checkpoint_bytes(config, facts) - saved_replay_bytes(config, facts)
    return (Part("checkpoints before the first timestep", 2 * each),)


def checkpoint_bytes(config: RunConfig, facts: RunFacts, timesteps: int | None = None) -> int:
    """Weights, the optimiser's two moments, every env and, if wanted, the replay.

    After so many timesteps, or at the end of the run; it never shrinks.
    """
    network, algorithm = network_of(config, facts), config.algorithm
    has_learned = takes_gradient_steps(config)
    if isinstance(algorithm, DQNConfig) and offline_of(config) is None and timesteps is not None:
        has_learned = has_learned and timesteps > algorithm.learning_starts
    return size.checkpoint_bytes(
        policy_weights=network.policy_parameters,
        optimized_weights=network.parameters if has_learned else 0,
        n_envs=config.env.n_envs,
        observation_bytes=network.observation,
        replay_bytes=saved_replay_bytes(config, facts, timesteps),
    )


def kept_checkpoints_bytes(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, updates: int
) -> int:
    """The most that there are after so many updates."""
    kept = _retention(config, training).after(updates)
    return _newest_bytes(config, facts, training, kept, at=updates)


def _newest_bytes(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, count: int, *, at: int
) -> int:
    """Of the newest `count` that may be there after `at` updates.

    Whichever are kept, they take no more. Of many, the oldest are counted as the last of the
    others.
    """
    saves = _retention(config, training).newest(at, min(count, _COUNTED_CHECKPOINTS))
    sizes = [
        checkpoint_bytes(config, facts, training.began_at + n * training.timesteps_per_update)
        for n in saves
    ]
    return sum(sizes) + (count - len(sizes)) * (sizes[-1] if sizes else 0)


def _teacher(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    """Its weights, counted as if its run were on another disk; on the same one they are links."""
    algorithm = config.algorithm
    if not isinstance(algorithm, DQNConfig) or algorithm.teacher is None:
        return ()
    return (Part("teacher", network_of(config, facts).policy_bytes),)


def _retention(config: RunConfig, training: TrainingArithmetic) -> KeptCheckpoints:
    return KeptCheckpoints(
        every_timesteps=config.checkpoints.every_timesteps,
        evaluate_every_timesteps=config.evaluation.every_timesteps,
        keep_last=config.checkpoints.keep_last,
        keep_every_timesteps=config.checkpoints.keep_every_timesteps,
        rollout=training.timesteps_per_update,
        updates=training.updates,
    )


def _tensorboard_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    by_update = calibration.TENSORBOARD_UPDATE_NUMBERS + facts.n_game_curves
    times = training.updates
    if isinstance(config.algorithm, DQNConfig):
        times = training.played_timesteps // (facts.episode_timesteps * _EPISODES_IN_A_LOG)
    ways = len(config.evaluation_ways)
    of_evaluation = calibration.TENSORBOARD_EVALUATION_NUMBERS + (ways if ways > 1 else 0)
    numbers = times * by_update + training.evaluations * of_evaluation
    return numbers * calibration.TENSORBOARD_NUMBER_BYTES


def _evaluation_bytes(config: RunConfig, training: TrainingArithmetic, *, copies: int) -> int:
    """Of eval.csv and evaluations.npz, with the copies that so many checkpoints hold."""
    table = training.evaluations * len(config.evaluation_ways) * calibration.EVALUATION_ROW_BYTES
    episodes = config.evaluation.episodes * calibration.EVALUATION_EPISODE_BYTES
    one = episodes + calibration.EVALUATION_TIMESTEPS_BYTES
    file = training.evaluations * one + calibration.EVALUATION_FILE_BYTES
    return round(table * (1 + copies) + file * (1 + copies * calibration.BASE64_FACTOR))


def _event_bytes(config: RunConfig, training: TrainingArithmetic) -> int:
    """Of events.jsonl; each evaluation may be the best so far, and so be saved."""
    rollouts = training.updates
    if isinstance(config.algorithm, DQNConfig):
        rollouts = min(rollouts, training.played_timesteps // FREQUENT_BOUNDARIES_TIMESTEPS)
    saved = training.checkpoints + training.evaluations
    return (
        rollouts * calibration.EVENT_ROLLOUT_BYTES
        + training.evaluations * len(config.evaluation_ways) * calibration.EVENT_EVALUATION_BYTES
        + saved * calibration.EVENT_CHECKPOINT_BYTES
    )


def _clip_bytes(config: RunConfig, facts: RunFacts) -> int:
    return n_pictures(config, facts) * calibration.PICTURE_BYTES[config.recording.format]


def timestep_of_full_disk(
    config: RunConfig, facts: RunFacts, footprint: Footprint, free_bytes: int
) -> int | None:
    """When a write fails for want of space; None if all of them fit."""
    disk, training = footprint.disk, footprint.training
    rollout, retention = training.timesteps_per_update, _retention(config, training)

    def needed(update: int) -> float:
        saved = _newest_bytes(config, facts, training, retention.at_once(update), at=update)
        return saved + update * disk.log_bytes_per_update

    updates = range(1, training.updates + 1)
    first = bisect_left(updates, True, key=lambda update: needed(update) > free_bytes)
    if first < len(updates):
        return training.began_at + updates[first] * rollout
    if disk.bytes + disk.momentary_bytes > free_bytes:
        return training.final_timesteps  # the last checkpoint or the clip
    return None
