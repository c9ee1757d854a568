"""Sizes and settings of learning from Lakes and from a teacher."""

from game_rl.config.algorithms import DQNConfig
from game_rl.config.learn_from import LearnFromConfig, OfflineConfig
from game_rl.config.schema import RunConfig


def learn_from_of(config: RunConfig) -> LearnFromConfig | None:
    algorithm = config.algorithm
    return algorithm.learn_from if isinstance(algorithm, DQNConfig) else None


def offline_of(config: RunConfig) -> OfflineConfig | None:
    """Return the settings of the offline phase, which is before the first timestep, if any."""
    settings = learn_from_of(config)
    return None if settings is None else settings.offline


def has_teacher(config: RunConfig) -> bool:
    """Whether a teacher, and not only the TD targets, trains the network."""
    algorithm = config.algorithm
    return isinstance(algorithm, DQNConfig) and algorithm.teacher is not None


def takes_gradient_steps(config: RunConfig) -> bool:
    """Whether the network ever learns, before the first timestep or after it."""
    return config.algorithm.learns or offline_of(config) is not None
