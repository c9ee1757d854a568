"""What a policy expects of the actions of a vec step, for whoever watches."""

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy

from game_rl.algorithms.observation_batches import observation_tensors
from game_rl.algorithms.policies import LeanCnnPolicy
from game_rl.envs.observation import Observation


def policy_values(model: BaseAlgorithm, observations: Observation) -> NDArray[np.float32]:
    """Return, for each observation, its value and then that of each action, float32 [n, 1 + A].

    PPO has the value of its critic and the actions' probabilities, DQN and PQN the largest Q-value
    and the Q-values. Random generators stay as they are, even if a network draws numbers.
    """
    on_gpu = [model.device] if model.device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(on_gpu):
        value, of_actions = _values(model, observations)
        rows: NDArray[np.float32] = torch.cat((value, of_actions), dim=1).float().cpu().numpy()
    return rows


def _values(model: BaseAlgorithm, observations: Observation) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values [n, 1] and those of the actions [n, A]."""
    tensors = observation_tensors(observations, model.device)
    policy = model.policy
    if isinstance(policy, LeanCnnPolicy):
        value, log_probs = policy.values_and_log_probs(tensors)
        return value, log_probs.exp()
    if isinstance(policy, ActorCriticPolicy):
        probabilities = policy.get_distribution(tensors).distribution.probs  # type: ignore[union-attr]
        return policy.predict_values(tensors), probabilities
    q_values: torch.Tensor = policy.q_net(tensors)  # type: ignore[operator]  # DQN's and PQN's
    return q_values.amax(dim=1, keepdim=True), q_values
