"""Distillation of some values: what is not among them is never new."""

import numpy as np
import torch

from benchmarks.curiosity import PartialDistillation
from game_rl.curiosity.distillation import Distillation
from tests.algorithms.observations import WITHOUT_SCREEN
from tests.curiosity.test_distillation import COEF, GAMMA, N_ENVS, filled

_CPU = torch.device("cpu")
_LIKE = {"coef": COEF, "gamma": GAMMA, "n_envs": N_ENVS, "seed": 0, "device": _CPU}


def test_with_nothing_to_see_every_observation_is_alike() -> None:
    found = PartialDistillation(WITHOUT_SCREEN, {}, **_LIKE)
    buffers = [filled(WITHOUT_SCREEN, seed) for seed in (1, 2)]
    for buffer in buffers:
        buffer.number_by_env()
    timesteps = np.arange(5)
    rows = [found._rows(buffer, timesteps) for buffer in buffers]
    assert torch.equal(rows[0], rows[1])


def test_with_all_to_see_it_is_the_distillation() -> None:
    seen = {name: slice(None) for name, _ in WITHOUT_SCREEN.parts}
    advantages = []
    for found in (
        PartialDistillation(WITHOUT_SCREEN, seen, **_LIKE),
        Distillation(WITHOUT_SCREEN, **_LIKE),  # type: ignore[arg-type]  # of several types
    ):
        buffer = filled(WITHOUT_SCREEN)
        found.act(buffer)
        advantages.append(buffer.advantages)
    np.testing.assert_array_equal(advantages[0], advantages[1])


def test_only_the_chosen_numbers_of_a_part_are_seen() -> None:
    name, _ = WITHOUT_SCREEN.parts[0]
    buffer = filled(WITHOUT_SCREEN)
    buffer.number_by_env()
    timesteps = np.arange(5)
    found = PartialDistillation(WITHOUT_SCREEN, {name: slice(0, 1)}, **_LIKE)
    whole = Distillation(WITHOUT_SCREEN, **_LIKE)  # type: ignore[arg-type]  # of several types
    rows = found._rows(buffer, timesteps)
    assert torch.equal(rows[:, 0], whole._rows(buffer, timesteps)[:, 0])
    assert not rows[:, 1:].any()
