"""Bytes of the files that a run writes line by line: curves, events and evaluations.

What grows with each update may fill a disk in a long run, so its numbers are counted. An evaluation
or a checkpoint counts with one constant for all that is written of it, in every file and copy:
together they are about a thousandth of the margin of the disk.
"""

from game_rl.config.schema import RunConfig
from game_rl.events import CURVE_POINTS
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.workload import TrainingArithmetic, boundaries_of

_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves every 4 episodes


def predicted_log_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """Return the bytes of all logs at the end."""
    logging = config.logging
    episodes = training.played_timesteps // facts.episode_timesteps
    points = training.updates
    if config.algorithm.replay is not None:
        points = training.played_timesteps // (facts.episode_timesteps * _EPISODES_IN_A_LOG)
    numbers = calibration.UPDATE_NUMBERS + facts.n_game_curves
    each = logging.tensorboard * calibration.TENSORBOARD_NUMBER_BYTES
    each += logging.csv * calibration.PROGRESS_NUMBER_BYTES
    each += (logging.wandb is not None) * calibration.WANDB_NUMBER_BYTES
    return (
        points * numbers * each
        + min(points, CURVE_POINTS) * numbers * calibration.EVENT_NUMBER_BYTES
        + boundaries_of(config, training) * calibration.EVENT_ROLLOUT_BYTES
        + (training.evaluations + training.checkpoints) * calibration.EVALUATION_BYTES
        + logging.monitor * episodes * calibration.MONITOR_EPISODE_BYTES
    )
