"""The size of the run directory over the whole run."""

from bisect import bisect_left

from game_rl.checkpoints import checkpoint_files
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

_COUNTED_CHECKPOINTS = 64  # checkpoints whose sizes are computed one by one
_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves every 4 episodes


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
    """Bytes of checkpoints that would be deleted but for an upload that still reads them.

    Two at most: the one that is being sent and the best one. `upload.backlog_gb` limits them.
    """
    if config.upload is None:
        return 0
    return min(2 * checkpoint, round(config.upload.backlog_gb * 1e9))


def _parent_parts(facts: RunFacts) -> tuple[Part, ...]:
    """Files of a fork's parent that the fork has from its start."""
    if facts.fork is None:
        return ()
    kind = "linked" if facts.fork.is_linked else "copied"
    return (
        Part("the parent's curves and tables", facts.fork.copied_bytes),
        Part(f"the parent's checkpoint and Lake, {kind}", facts.fork.new_shared_bytes),
    )


def _lake_tables(facts: RunFacts) -> int:
    """Bytes of the unnamed table files of the Lakes that are learned from.

    They vanish with the process. There are three copies at most: the present table and, while
    a new one is sorted, its unordered and its ordered file.
    """
    return 3 * facts.learned_lakes.blocks * TABLE_BYTES


def _offline_checkpoints(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> tuple[Part, ...]:
    """Checkpoints that stay from learning before the first timestep: the best and the last one."""
    if not training.offline_gradient_steps:
        return ()
    each = checkpoint_bytes(config, facts) - saved_replay_bytes(config, facts)
    return (Part("checkpoints before the first timestep", 2 * each),)


def checkpoint_bytes(config: RunConfig, facts: RunFacts, timesteps: int | None = None) -> int:
    """Size of a checkpoint: weights, the optimiser's two moments, every env and perhaps the replay.

    Args:
        timesteps: when the checkpoint is written; None: at the end of the run. A later one is never
            smaller.
    """
    network, algorithm = network_of(config, facts), config.algorithm
    has_learned = takes_gradient_steps(config)
    if isinstance(algorithm, DQNConfig) and offline_of(config) is None and timesteps is not None:
        has_learned = has_learned and timesteps > algorithm.learning_starts
    return checkpoint_files.checkpoint_bytes(
        policy_weights=network.policy_parameters,
        optimized_weights=network.parameters if has_learned else 0,
        n_envs=config.env.n_envs,
        observation_bytes=network.observation,
        replay_bytes=saved_replay_bytes(config, facts, timesteps),
    )


def kept_checkpoints_bytes(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, updates: int
) -> int:
    """Upper bound for the bytes of all checkpoints that are kept after so many updates."""
    kept = _retention(config, training).after(updates)
    return _newest_bytes(config, facts, training, kept, at=updates)


def _newest_bytes(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, count: int, *, at: int
) -> int:
    """Bytes of the newest `count` checkpoints that may exist after `at` updates.

    Checkpoints never shrink, so any `count` that are kept take no more. The sizes of the newest
    `_COUNTED_CHECKPOINTS` are computed, and older ones count as large as the oldest of those.
    """
    saves = _retention(config, training).newest(at, min(count, _COUNTED_CHECKPOINTS))
    sizes = [
        checkpoint_bytes(config, facts, training.began_at + n * training.timesteps_per_update)
        for n in saves
    ]
    return sum(sizes) + (count - len(sizes)) * (sizes[-1] if sizes else 0)


def _teacher(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    """The teacher's weights, counted as a copy; on the same disk as its run they are links."""
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
    """Bytes of eval.csv and evaluations.npz, and of their copies in `copies` checkpoints."""
    table = training.evaluations * len(config.evaluation_ways) * calibration.EVALUATION_ROW_BYTES
    episodes = config.evaluation.episodes * calibration.EVALUATION_EPISODE_BYTES
    one = episodes + calibration.EVALUATION_TIMESTEPS_BYTES
    file = training.evaluations * one + calibration.EVALUATION_FILE_BYTES
    return round(table * (1 + copies) + file * (1 + copies * calibration.BASE64_FACTOR))


def _event_bytes(config: RunConfig, training: TrainingArithmetic) -> int:
    """Bytes of events.jsonl, where every evaluation counts as the best so far and is saved."""
    rollouts = training.updates
    if isinstance(config.algorithm, DQNConfig):
        rollouts = min(rollouts, training.played_timesteps // FREQUENT_BOUNDARIES_TIMESTEPS)
    saved = training.checkpoints + training.evaluations
    evaluations = training.evaluations * len(config.evaluation_ways) + training.confirmations
    return (
        rollouts * calibration.EVENT_ROLLOUT_BYTES
        + evaluations * calibration.EVENT_EVALUATION_BYTES
        + saved * calibration.EVENT_CHECKPOINT_BYTES
    )


def _clip_bytes(config: RunConfig, facts: RunFacts) -> int:
    return n_pictures(config, facts) * calibration.PICTURE_BYTES[config.recording.format]


def timestep_of_full_disk(
    config: RunConfig, facts: RunFacts, footprint: Footprint, free_bytes: int
) -> int | None:
    """Return the timestep at which a write fails because the disk is full; None if all fit."""
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
