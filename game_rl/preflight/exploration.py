"""The finding about restarts of exploration that have no effect, or not the intended one."""

from game_rl.algorithms.epsilon_greedy import exploration_schedule
from game_rl.config.algorithms import DQNConfig, PPOConfig, RestartConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight.findings import Finding
from game_rl.preflight.situation import Situation


def restart_without_effect(situation: Situation) -> Finding | None:
    """Report the first restart with a fault; fixing it may change the faults of later ones."""
    config = situation.config
    if isinstance(config.algorithm, PPOConfig):
        return None
    for index, restart in enumerate(config.algorithm.exploration.restarts):
        if (fault := _fault(config, restart)) is not None:
            key = f"algorithm.exploration.restarts.{index}"
            return Finding("warning", "restart_without_effect", key, fault, None)
    return None


def _fault(config: RunConfig, restart: RestartConfig) -> str | None:
    algorithm, total = config.algorithm, config.total_timesteps
    assert not isinstance(algorithm, PPOConfig)
    at, back = restart.at, restart.at + restart.over
    usual = exploration_schedule(
        algorithm.exploration.model_copy(update={"restarts": ()}), timesteps=total
    ).at(at)
    if restart.start <= usual:
        return (
            f"it begins at {restart.start:g}, but the main line is at {usual:.3g} at timestep "
            f"{at:,}, and the share never falls below it: use a larger start, or a later at"
        )
    if isinstance(algorithm, DQNConfig) and at < algorithm.learning_starts:
        return (
            f"it begins at timestep {at:,}, but every action is random before learning_starts, "
            f"{algorithm.learning_starts:,}: use a later at"
        )
    if restart.over < config.rollout_timesteps and not isinstance(algorithm, DQNConfig):
        return (
            f"it lasts {restart.over:,} timesteps, less than one rollout of "
            f"{config.rollout_timesteps:,}, in which the share stays the same: use a larger over"
        )
    if back > total:
        return (
            f"it lasts until timestep {back:,}, but the run ends at {total:,}, with its share of "
            "random actions still raised: use an earlier at, or a smaller over"
        )
    return None
