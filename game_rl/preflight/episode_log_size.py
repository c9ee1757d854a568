"""The size of a run's logged episodes."""

import math

from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.workload import TrainingArithmetic

_MB = 10**6


def logged_episode_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """Bytes of `episodes/` at the end of a run, with actions drawn evenly; 0 without a log."""
    if config.episodes is None:
        return 0
    evaluation = config.evaluation
    each = max(1, facts.episode_timesteps)
    played = training.evaluations * len(config.evaluation_ways) * evaluation.episodes
    played += evaluation.final_episodes
    timesteps = training.played_timesteps + played * each
    n_choices = 2 if config.env.sticky_actions else 1  # what the agent chose and what was played
    bits = math.log2(max(2, facts.n_actions)) * calibration.LOGGED_ACTION_FACTOR
    blocks = training.checkpoints + 2 * training.evaluations + 2
    size = timesteps * n_choices * bits / 8
    size += (training.played_timesteps / each + played) * calibration.LOGGED_EPISODE_BYTES
    size += blocks * calibration.LOGGED_BLOCK_BYTES
    size *= 1 + 16 * calibration.LOGGED_SEGMENT_BYTES / (config.episodes.limit_mb * _MB)
    return min(round(size + 2 * calibration.LOGGED_SEGMENT_BYTES), config.episodes.limit_mb * _MB)
