"""Bytes of the files that a run writes line by line: curves, events and evaluations."""

from game_rl.config.schema import RunConfig
from game_rl.events import CURVE_POINTS
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.workload import TrainingArithmetic, boundaries_of

_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves every 4 episodes


def predicted_log_bytes(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, *, copies: int
) -> int:
    """Return the bytes of all logs at the end.

    Args:
        copies: number of checkpoints, each of which has a copy of the evaluations.
    """
    return (
        _curve_bytes(config, facts, training)
        + _event_bytes(config, facts, training)
        + _evaluation_bytes(config, training, copies=copies)
    )


def _curve_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """Bytes of the logs that section `logging` turns on."""
    logging = config.logging
    by_update = calibration.TENSORBOARD_UPDATE_NUMBERS + facts.n_game_curves
    ways = len(config.evaluation_ways)
    of_evaluation = calibration.TENSORBOARD_EVALUATION_NUMBERS + (ways if ways > 1 else 0)
    dumps = _log_dumps(config, facts, training)
    of_evaluation += _start_states_apart(facts)
    numbers = dumps * by_update + training.evaluations * of_evaluation
    fields = (dumps + training.evaluations) * (by_update + of_evaluation)
    episodes = training.played_timesteps // facts.episode_timesteps
    return (
        logging.tensorboard * numbers * calibration.TENSORBOARD_NUMBER_BYTES
        + logging.csv * fields * calibration.PROGRESS_NUMBER_BYTES
        + (logging.wandb is not None) * numbers * calibration.WANDB_NUMBER_BYTES
        + logging.monitor * episodes * calibration.MONITOR_EPISODE_BYTES
    )


def _start_states_apart(facts: RunFacts) -> int:
    """Number of start states of which an evaluation reports each one's results."""
    return facts.n_start_states if facts.n_start_states > 1 else 0


def _log_dumps(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """How often SB3 writes the training curves."""
    if config.algorithm.replay is None:
        return training.updates
    return training.played_timesteps // (facts.episode_timesteps * _EPISODES_IN_A_LOG)


def _evaluation_bytes(config: RunConfig, training: TrainingArithmetic, *, copies: int) -> int:
    """Bytes of eval.csv and evaluations.npz, and of their copies in `copies` checkpoints."""
    table = training.evaluations * len(config.evaluation_ways) * calibration.EVALUATION_ROW_BYTES
    episodes = config.evaluation.episodes * calibration.EVALUATION_EPISODE_BYTES
    one = episodes + calibration.EVALUATION_TIMESTEPS_BYTES
    file = training.evaluations * one + calibration.EVALUATION_FILE_BYTES
    return round(table * (1 + copies) + file * (1 + copies * calibration.BASE64_FACTOR))


def _event_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """Bytes of events.jsonl, where every evaluation counts as the best so far and is saved."""
    rollouts = boundaries_of(config, training)
    saved = training.checkpoints + training.evaluations
    of_curves = calibration.EVENT_CURVES_BYTES + calibration.EVENT_CURVES_NUMBER_BYTES * (
        calibration.TENSORBOARD_UPDATE_NUMBERS + facts.n_game_curves
    )
    of_evaluation = calibration.EVENT_EVALUATION_BYTES
    of_evaluation += facts.n_actions * calibration.EVENT_EVALUATION_ACTION_BYTES
    evaluations = training.evaluations * len(config.evaluation_ways) + training.confirmations
    of_evaluation += _start_states_apart(facts) * calibration.EVENT_START_STATE_BYTES
    return (
        rollouts * calibration.EVENT_ROLLOUT_BYTES
        + min(_log_dumps(config, facts, training), CURVE_POINTS) * of_curves
        + evaluations * of_evaluation
        + saved * calibration.EVENT_CHECKPOINT_BYTES
    )
