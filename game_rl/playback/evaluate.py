"""Evaluating a trained run."""

from contextlib import closing
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import obs_as_tensor

from game_rl.algorithms.policies import DQNPolicy, PQNPolicy
from game_rl.callbacks.evaluate import Evaluation, Values, evaluate
from game_rl.config.algorithms import PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.playback.policy import TrainedRun
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.vec_env.make_vec_env import make_vec_env


def evaluate_run(
    run: TrainedRun,
    *,
    episodes: int,
    seed: int | None = None,
    start_state: str | None = None,
    stop: StopRequest | None = None,
) -> Evaluation:
    """Play episodes with a run's checkpoint.

    Args:
        seed: chooses the episodes. None plays those of the run's final evaluation, which selected
            nothing.
        start_state: start state of all episodes, trained on or not, or None for those of the
            config.
        stop: request that interrupts the evaluation.

    Raises:
        EvaluationInterrupted: a stop was requested.
        UsageError: the game has no such start state.
    """
    config = run.config
    env_config = config.env
    if start_state is not None:
        env_config = with_changed(env_config, {("start_states",): (start_state,)})
    if seed is None:
        seed = seed_for(config.seed, "final_evaluation")
    n_envs = config.evaluation.envs_for(episodes)
    with closing(make_vec_env(env_config, run.game, n_envs=n_envs, seed=seed)) as vec_env:
        policy = run.policy(vec_env.observation_space, vec_env.action_space)
        return evaluate(
            policy,
            vec_env,
            episodes=episodes,
            deterministic=run.deterministic,
            seed=seed,
            stop=stop,
            values=_values(policy, config),
        )


def _values(policy: BasePolicy, config: RunConfig) -> Values | None:
    """Return the returns that a Q-network expects, or None if the policy has no Q-network."""
    if isinstance(config.algorithm, PPOConfig):
        return None
    assert isinstance(policy, DQNPolicy | PQNPolicy)
    q_net = policy.q_net

    def best(observations: NDArray[Any]) -> NDArray[np.float32]:
        with torch.no_grad():
            values: torch.Tensor = q_net(obs_as_tensor(observations, policy.device))
        return values.max(dim=1).values.float().numpy()

    return Values(best, config.algorithm.gamma)
