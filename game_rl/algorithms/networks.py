"""SB3's networks, in the number format that the hardware is fast in."""

from typing import Literal

import torch
from stable_baselines3.common.torch_layers import NatureCNN

from game_rl.resources import cpu_has_bf16


class Bf16NatureCNN(NatureCNN):
    """NatureCNN whose convolutions and linear layer multiply in bfloat16.

    Weights, their gradients and the optimiser stay float32, and so do the features that come out:
    float32 [batch, features_dim]. A state dict is that of NatureCNN.
    """

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        with torch.autocast(observations.device.type, dtype=torch.bfloat16):
            features = super().forward(observations)
        return features.float()


def features_extractor(
    precision: Literal["float32", "bf16", "auto"], device: str
) -> type[NatureCNN]:
    """The network for `precision`; `auto` is bf16 where `device` is faster in it."""
    if precision == "auto":
        fast = torch.cuda.is_bf16_supported() if device.startswith("cuda") else cpu_has_bf16()
        precision = "bf16" if fast else "float32"
    return Bf16NatureCNN if precision == "bf16" else NatureCNN
