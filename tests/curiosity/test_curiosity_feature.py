"""The forecast of curiosity, beside the size of what is written."""

import pytest
import torch

from game_rl.curiosity.curiosity_feature import CuriosityFeature
from game_rl.curiosity.distillation import Distillation
from tests.preflight.conftest import FACTS, make_config


def test_a_checkpoint_has_about_the_size_that_is_forecast() -> None:
    config = make_config(algorithm__curiosity={})
    planned = FACTS.planned(config)
    found = Distillation(
        planned.observation_format,
        coef=0.5,
        gamma=0.99,
        n_envs=config.env.n_envs,
        seed=0,
        device=torch.device("cpu"),
    )
    written = len(found.saved().model_dump_json())
    assert CuriosityFeature().checkpoint_bytes(planned, 0) == pytest.approx(written, rel=0.01)


def test_without_the_key_it_costs_nothing() -> None:
    planned = FACTS.planned(make_config())
    feature = CuriosityFeature()
    assert not [*feature.memory(planned), *feature.network_memory(planned)]
    assert feature.checkpoint_bytes(planned, 0) == 0
