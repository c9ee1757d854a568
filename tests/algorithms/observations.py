"""Observations with parts for tests, at random."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat, Stretch

VECTOR = PartFormat("vector", (5,), 0, (Stretch(2, 32), Stretch(3, 1)))
PARTS = {
    "bag": PartFormat.of_indices("categories", (3,), 20, is_stacked=True),
    "species": PartFormat.of_indices("categories", (6,), 400),
    "status": VECTOR,
    "tiles": PartFormat.of_indices("grid", (1, 4, 4), 3, is_stacked=True),
    "visited": PartFormat.of_indices("grid", (1, 9, 6), 2),
}
SCREENS = FramePacking((1, 40, 36))
EVERYTHING = ObservationFormat(SCREENS, 2, tuple(PARTS.items()))
WITHOUT_SCREEN = ObservationFormat(None, 2, tuple(PARTS.items()))
AS_SB3 = ObservationFormat(SCREENS, 2, (("a", VECTOR), ("status", VECTOR)))
VECTORS = ObservationFormat(None, 1, (("status", VECTOR),))
ACTIONS = spaces.Discrete(4)


def dict_space(form: ObservationFormat) -> spaces.Dict:
    assert isinstance(form.space, spaces.Dict)
    return form.space


def drawn(form: ObservationFormat, n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Draw `n` observations of the format."""
    rng, found = np.random.default_rng(seed), {}
    for name, space in dict_space(form).spaces.items():
        assert isinstance(space, spaces.Box)
        shape = (n, *space.shape)
        if space.dtype == np.float32:
            found[name] = rng.normal(size=shape).astype(np.float32)
        else:
            most = int(space.high.max())
            found[name] = rng.integers(0, most + 1, shape).astype(space.dtype)
    return found


def tensors(observations: dict[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in observations.items()}
