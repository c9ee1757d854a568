"""Names that differ in checkpoints of the last release."""

from game_rl.checkpoints.tensors import Tensors

_PQN_HEAD = {"head.weight": "q_net.q_net.0.weight", "head.bias": "q_net.q_net.0.bias"}


def with_present_names(policy: Tensors) -> Tensors:
    """Return a policy's tensors under their present names; PQN's had others."""
    if not policy.keys() >= _PQN_HEAD.keys():
        return policy
    return {_PQN_HEAD.get(name, f"q_net.{name}"): tensor for name, tensor in policy.items()}
