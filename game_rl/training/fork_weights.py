"""A checkpoint's weights in the network that a fork's config asks for."""

from game_rl.algorithms.make_policy import make_policy
from game_rl.algorithms.q_networks import DQNPolicy, PQNPolicy, load_q_network
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.tensors import Tensors, load_module_tensors, module_tensors
from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.vec_env.spaces_env import spaces_env


def fitting_weights(
    checkpoint: Checkpoint, parent: RunConfig, config: RunConfig, game: Game
) -> Tensors | None:
    """Weights for the algorithm of `config`; None where the checkpoint's own are those.

    Raises:
        CheckpointError: they are of another network; the first tensor that does not fit is named.
    """
    spaces = spaces_env(config, game)
    policy = make_policy(config.algorithm, spaces.observation_space, spaces.action_space)
    if parent.algorithm.name == config.algorithm.name:
        name = str(checkpoint.path / "policy.safetensors")
        load_module_tensors(policy, checkpoint.policy(), name)
        return None
    if isinstance(policy, DQNPolicy | PQNPolicy):
        load_q_network(policy, checkpoint.policy())
        return module_tensors(policy)
    load_module_tensors(policy, checkpoint.policy(), str(checkpoint.path / "policy.safetensors"))
    return module_tensors(policy)
