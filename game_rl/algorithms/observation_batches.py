"""Batches of observations, made of single ones and as tensors."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import TensorDict
from stable_baselines3.common.utils import obs_as_tensor

from game_rl.envs.observation import Observation

Tensors = torch.Tensor | TensorDict
"""Observations as the network gets them."""


def observation_batch(observations: Sequence[Observation]) -> Observation:
    """Return a new batch of single observations."""
    first = observations[0]
    if isinstance(first, Mapping):
        of_parts = cast("Sequence[Mapping[str, NDArray[Any]]]", observations)
        return {name: np.stack([each[name] for each in of_parts]) for name in first}
    return np.stack(cast("Sequence[NDArray[Any]]", observations))


def n_observations(batch: Observation) -> int:
    """Return the number of observations in a batch."""
    return len(next(iter(batch.values())) if isinstance(batch, Mapping) else batch)


def observation_tensors(batch: Observation, device: torch.device) -> Tensors:
    """Return a batch on the device; on the CPU its memory is the arrays'."""
    return obs_as_tensor(batch, device)  # type: ignore[arg-type]  # any mapping will do
