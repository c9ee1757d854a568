"""Gaussian noise on the weights of a policy: how a copy mutates."""

import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from game_rl.algorithms.q_networks import DQNPolicy


def add_weight_noise(policy: BasePolicy, sigma: float, rng: np.random.Generator) -> None:
    """Change the weights in place: W <- W + sigma rms(W) E, with E ~ N(0, 1) for each number.

    W is the weight, on the CPU, of a convolution or a linear layer, and rms(W) the root of the mean
    of its squares. Biases and normalisations stay. DQN's target network becomes a copy.

    Additive noise on all weights is that of Such et al. 2017 (Deep Neuroevolution), who have 0.002
    for all layers of the same network. That it goes with the size of the weights, and leaves biases
    and normalisations alone, is Khadka and Tumer's (2018, ERL), who have a tenth of each weight's
    own size for up to a tenth of a layer's weights. The layer's size stands here instead of a
    weight's own, so that a weight near 0 moves, too.

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
