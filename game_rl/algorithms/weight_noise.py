"""Gaussian noise on the weights of a policy, by which a copy mutates."""

import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from game_rl.algorithms.policies import DQNPolicy


def add_weight_noise(policy: BasePolicy, sigma: float, rng: np.random.Generator) -> None:
    """Change the weights in place: W <- W + sigma rms(W) E, with E ~ N(0, 1) for each number.

    W is the weight of a convolution or a linear layer, on the CPU, and rms(W) is the root mean
    square of its numbers. Biases and normalisation layers do not change. DQN's target network
    becomes a copy of the changed network.

    Additive noise on all weights follows Such et al. 2017 (Deep Neuroevolution), who use 0.002 for
    all layers of the same network. Noise in proportion to the weights, without biases and
    normalisation layers, follows Khadka and Tumer (2018, ERL), who use a tenth of each weight's own
    size for up to a tenth of a layer's weights. Here it is in proportion to the layer's rms instead
    of each weight's own size, so that weights near 0 move as well.

    Args:
        rng: draws float32 numbers, layer by layer in the order of `policy.modules()`.
    """
    network = policy.q_net if isinstance(policy, DQNPolicy) else policy
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                values = layer.weight.numpy()
                size = np.sqrt(np.mean(np.square(values, dtype=np.float64)))
                noise = rng.standard_normal(values.shape, dtype=np.float32)
                layer.weight += torch.from_numpy(np.float32(sigma * size) * noise)
    if isinstance(policy, DQNPolicy):
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())
