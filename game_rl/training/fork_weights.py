"""Fit a checkpoint's weights into the network of a fork's config."""

import numpy as np

from game_rl.algorithms.policies import DQNPolicy, PQNPolicy, load_q_network, make_policy
from game_rl.algorithms.weight_noise import add_weight_noise
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.model_state import Tensors, load_module_tensors, module_tensors
from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.seeds import seed_for
from game_rl.vec_env.spaces_env import spaces_env

_NOISE = "weight_noise"


def fitting_weights(
    checkpoint: Checkpoint, parent: RunConfig, config: RunConfig, game: Game
) -> Tensors | None:
    """Return the weights for the algorithm of `config`, with the noise that its fork asks for.

    None if the checkpoint's weights can be used unchanged.

    Raises:
        CheckpointError: the weights are of another network; the error names the first tensor that
            does not fit.
    """
    spaces = spaces_env(config, game)
    policy = make_policy(config.algorithm, spaces.observation_space, spaces.action_space)
    noise = 0.0 if config.fork is None else config.fork.weight_noise
    is_same = parent.algorithm.name == config.algorithm.name
    if is_same or not isinstance(policy, DQNPolicy | PQNPolicy):
        name = str(checkpoint.path / "policy.safetensors")
        load_module_tensors(policy, checkpoint.policy(), name)
    else:
        load_q_network(policy, checkpoint.policy())
    if noise:
        add_weight_noise(policy, noise, np.random.default_rng(seed_for(config.seed, _NOISE)))
    return None if is_same and not noise else module_tensors(policy)
