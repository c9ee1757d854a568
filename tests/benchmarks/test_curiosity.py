"""Random network distillation, compared with sums as the papers write them."""

import numpy as np
import torch

from benchmarks.curiosity import Moments, RandomNetworkDistillation


def test_advantages_are_the_sums_of_later_errors_of_the_values() -> None:
    """Schulman et al. 2016, equation 16, without an episode's end."""
    rng = np.random.default_rng(0)
    rewards = rng.random((3, 7), np.float32)
    values = rng.random((3, 7), np.float32)
    gamma, gae_lambda = 0.9, 0.8
    found = RandomNetworkDistillation({}, weight=1.0, gamma=gamma).advantages(
        rewards, values, gae_lambda
    )
    after = np.concatenate((values[:, 1:], values[:, -1:]), axis=1)
    errors = rewards + gamma * after - values
    for step in range(7):
        wanted = sum((gamma * gae_lambda) ** k * errors[:, step + k] for k in range(7 - step))
        np.testing.assert_allclose(found[:, step], wanted, rtol=1e-5)


def test_moments_are_those_of_all_rows() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(3.0, 2.0, (50, 4)))
    moments = Moments()
    for part in rows.split([7, 20, 23]):
        moments.update(part)
    np.testing.assert_allclose(moments.mean, rows.mean(0))
    np.testing.assert_allclose(moments.var, rows.var(0, unbiased=False))
