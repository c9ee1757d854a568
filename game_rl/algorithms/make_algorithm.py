"""The table of algorithms, and what is built from a run's config: the algorithm, its policy."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import BuildContext, LeanAlgorithm
from game_rl.algorithms.automatic import placement_of, resolved_on, this_hardware
from game_rl.algorithms.dqn import make_dqn
from game_rl.algorithms.policies import (
    DQNPolicy,
    PQNPolicy,
    ppo_policy_to_load,
    q_policy_to_load,
)
from game_rl.algorithms.ppo import make_ppo
from game_rl.algorithms.pqn import make_pqn
from game_rl.config.algorithms import AlgorithmConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.files.run_dir import RunDir
from game_rl.loggers.make_logger import make_logger
from game_rl.seeds import seed_for
from game_rl.system.process_memory import keep_freed_memory


@dataclass(frozen=True)
class _Kind:
    """One algorithm.

    Attributes:
        make: builds it from its section of the config.
        policy_to_load: builds a float32 policy on the CPU for the weights that it trained, from
            its section and the spaces of observations and actions.
    """

    make: Callable[[Any, BuildContext], LeanAlgorithm]
    policy_to_load: Callable[[Any, spaces.Space[Any], spaces.Space[Any]], BasePolicy]


ALGORITHMS: Mapping[str, _Kind] = {
    "ppo": _Kind(make_ppo, ppo_policy_to_load),
    "dqn": _Kind(make_dqn, partial(q_policy_to_load, DQNPolicy)),
    "pqn": _Kind(make_pqn, partial(q_policy_to_load, PQNPolicy)),
}
"""Every algorithm by its name in the config."""


def _kind_of(config: AlgorithmConfig) -> _Kind:
    """Return the algorithm; that with a memory is loaded, with sb3-contrib, only by who has one."""
    if config.memory is None:
        return ALGORITHMS[config.name]
    ppo = importlib.import_module("game_rl.algorithms.recurrent_ppo")
    policy = importlib.import_module("game_rl.algorithms.recurrent_policy")
    return _Kind(ppo.make_recurrent_ppo, policy.recurrent_policy_to_load)


def make_policy(
    config: AlgorithmConfig,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> BasePolicy:
    """Build a float32 policy on the CPU, whose weights are to be replaced by `make_algorithm`'s."""
    return _kind_of(config).policy_to_load(config, observation_space, action_space)


def make_algorithm(
    config: RunConfig,
    vec_env: VecEnv,
    run_dir: RunDir,
    *,
    observation_format: ObservationFormat,
    stream: str,
    schedule_timesteps: int | None = None,
) -> LeanAlgorithm:
    """Build the algorithm of `config`, which logs as its section `logging` says.

    Args:
        observation_format: of what `vec_env` returns.
        stream: name under which the algorithm's seed is derived from the run's.
        schedule_timesteps: timesteps over which the schedules run, or None for `total_timesteps`.

    Raises:
        ConfigError: `device` names a GPU that does not exist.
    """
    config = resolved_on(config, observation_format, this_hardware())
    keep_freed_memory()  # each gradient step allocates what the previous one freed
    schedule_timesteps = schedule_timesteps or config.total_timesteps
    context = BuildContext(
        vec_env=vec_env,
        observation_format=observation_format,
        seed=seed_for(config.seed, stream),
        placement=placement_of(config),
        schedule_timesteps=schedule_timesteps,
        schedule_share=schedule_timesteps / config.total_timesteps,
    )
    model = _kind_of(config.algorithm).make(config.algorithm, context)
    model.set_logger(make_logger(config.logging, run_dir))
    return model
