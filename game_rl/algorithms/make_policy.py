"""Building an algorithm's policy from a config, for playing."""

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy, BasePolicy

from game_rl import schedules
from game_rl.algorithms.optimizers import Adam
from game_rl.algorithms.q_networks import DQNPolicy, PQNPolicy
from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, PQNConfig

_NO_LEARNING = schedules.constant(0.0)


def make_policy(
    config: AlgorithmConfig,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> BasePolicy:
    """Build a new float32 policy on the CPU, with the same state dict as `make_algorithm`'s has."""
    if isinstance(config, PQNConfig):
        return PQNPolicy(
            observation_space, action_space, _NO_LEARNING, layer_norm=config.layer_norm
        )
    if isinstance(config, DQNConfig):
        assert isinstance(action_space, spaces.Discrete)
        return DQNPolicy(
            observation_space, action_space, _NO_LEARNING, layer_norm=config.layer_norm
        )
    return ActorCriticCnnPolicy(observation_space, action_space, _NO_LEARNING, optimizer_class=Adam)
