"""Stopping a training before a broken network is saved."""

import torch

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.errors import NonFiniteError


class NonFiniteCallback(BoundaryCallback):
    """Raises NonFiniteError when an update left a weight that is NaN or infinite.

    It must come before the callbacks that save, because they act at the same boundary.
    """

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002 - every boundary is checked
        check_finite(self.model.policy, self.boundary_timesteps)


def check_finite(policy: torch.nn.Module, timesteps: int) -> None:
    for name, parameter in policy.named_parameters():
        # the extremes are NaN where any weight is, and are found faster than by isfinite on all
        extremes = torch.stack(parameter.detach().aminmax())
        if not torch.isfinite(extremes).all():
            raise NonFiniteError(
                f"the update before timestep {timesteps:,} made weight {name} non-finite; "
                "nothing was saved from it. Lower algorithm.learning_rate or "
                "algorithm.max_grad_norm, or look for an exploding reward in TensorBoard's game/…, "
                "then resume from the last checkpoint"
            )
