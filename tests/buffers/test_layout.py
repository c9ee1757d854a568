"""The layout against the arrays that SB3 really allocates."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from game_rl.buffers.layout import rollout_buffer_layout, total_bytes


@pytest.mark.parametrize(
    ("n_steps", "n_envs", "shape"),
    [(16, 2, (4, 72, 80)), (5, 1, (12, 144, 160)), (7, 3, (1, 36, 36))],
)
def test_the_layout_is_what_sb3_allocates(
    n_steps: int, n_envs: int, shape: tuple[int, ...]
) -> None:
    buffer = RolloutBuffer(
        n_steps, spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(9), n_envs=n_envs
    )
    allocated = {
        name: (value.shape, value.dtype)
        for name, value in vars(buffer).items()
        if isinstance(value, np.ndarray)
    }
    layout = rollout_buffer_layout(n_steps=n_steps, n_envs=n_envs, observation_shape=shape)
    assert {a.name: (a.shape, np.dtype(a.dtype)) for a in layout} == allocated
    assert total_bytes(layout) == sum(
        value.nbytes for value in vars(buffer).values() if isinstance(value, np.ndarray)
    )
