"""The run directory over the whole run."""

from bisect import bisect_left

from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration
from game_rl.preflight.arithmetic import TrainingArithmetic
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import DiskFootprint, Footprint, Part
from game_rl.preflight.memory import n_pictures, network_of


def disk_footprint(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> DiskFootprint:
    checkpoint = checkpoint_bytes(config, facts)
    kept = min(config.checkpoints.keep_last, training.checkpoints)
    rows = training.evaluations * calibration.EVALUATION_ROW_BYTES
    logs = _tensorboard_bytes(facts, training) + rows
    parts = (
        Part(f"{kept} checkpoint{'s' if kept > 1 else ''}", kept * checkpoint),
        Part("best checkpoint", checkpoint),
        Part("TensorBoard and tables", logs + calibration.RUN_FILES_BYTES),
        Part("clip", _clip_bytes(config, facts)),
    )
    return DiskFootprint(
        parts=parts,
        checkpoint_bytes=checkpoint,
        momentary_bytes=checkpoint,
        log_bytes_per_update=logs / training.updates,
    )


def checkpoint_bytes(config: RunConfig, facts: RunFacts) -> int:
    """Weights and Adam's two moments; gradients are not saved."""
    weights = network_of(config, facts).weights_bytes
    return 3 * weights + calibration.CHECKPOINT_OVERHEAD_BYTES


def _tensorboard_bytes(facts: RunFacts, training: TrainingArithmetic) -> int:
    by_update = calibration.TENSORBOARD_UPDATE_NUMBERS + facts.n_game_curves
    numbers = (
        training.updates * by_update
        + training.evaluations * calibration.TENSORBOARD_EVALUATION_NUMBERS
    )
    return numbers * calibration.TENSORBOARD_NUMBER_BYTES


def _clip_bytes(config: RunConfig, facts: RunFacts) -> int:
    return n_pictures(config, facts) * calibration.PICTURE_BYTES[config.recording.format]


def timestep_of_full_disk(config: RunConfig, footprint: Footprint, free_bytes: int) -> int | None:
    """When a write fails for want of space; None if all of them fit."""
    disk, training = footprint.disk, footprint.training
    rollout = training.timesteps_per_update

    def needed(update: int) -> float:
        timesteps = update * rollout
        saved = timesteps // config.checkpoints.every_timesteps
        evaluated = timesteps // config.evaluation.every_timesteps
        kept = min(saved, config.checkpoints.keep_last) + min(evaluated, 1)
        is_replacing = saved > config.checkpoints.keep_last or evaluated > 1
        replaced = disk.momentary_bytes if is_replacing else 0
        return kept * disk.checkpoint_bytes + replaced + update * disk.log_bytes_per_update

    updates = range(1, training.updates + 1)
    first = bisect_left(updates, True, key=lambda update: needed(update) > free_bytes)
    if first < len(updates):
        return updates[first] * rollout
    if disk.bytes + disk.momentary_bytes > free_bytes:
        return training.final_timesteps  # the last checkpoint or the clip
    return None
