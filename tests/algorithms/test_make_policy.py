"""The policy that plays against the one that has learned."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.algorithms.policies import make_policy
from game_rl.config.algorithms import AlgorithmConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.run_dir import RunDir
from tests.tiny_env import FRAME, TinyEnv

ALGORITHMS: list[dict[str, Any]] = [
    {"name": "ppo", "n_steps": 4, "batch_size": 4},
    *(
        {"layer_norm": layer_norm, **algorithm}
        for layer_norm in ("none", "channels", "picture")
        for algorithm in (
            {"name": "dqn", "replay": {"capacity": 100}, "learning_starts": 8, "batch_size": 4},
            {"name": "pqn", "n_steps": 4, "batch_size": 4},
        )
    ),
]


def trained(algorithm: AlgorithmConfig, folder: Path) -> BaseAlgorithm:
    config = RunConfig(
        game="duel", total_timesteps=32, run_dir=folder, device="cpu", algorithm=algorithm
    )
    stacked = VecFrameStack(DummyVecEnv([TinyEnv] * 2), 4, channels_order="first")
    model = make_algorithm(
        config, VecMonitor(stacked), RunDir(folder), packing=FramePacking(FRAME), stream="training"
    )
    model.learn(32)
    model.logger.close()
    return model


@pytest.mark.parametrize(
    "values", ALGORITHMS, ids=lambda a: f"{a['name']} {a.get('layer_norm', '')}"
)
def test_the_policy_that_plays_takes_the_weights_and_acts_as_the_one_that_learned(
    values: dict[str, Any], tmp_path: Path
) -> None:
    config: AlgorithmConfig = TypeAdapter(AlgorithmConfig).validate_python(values)
    model = trained(config, tmp_path)
    assert isinstance(model.action_space.shape, tuple)
    policy = make_policy(config, model.observation_space, model.action_space)
    policy.load_state_dict(model.policy.state_dict())
    stacks = torch.randint(0, 256, (200, 4, *FRAME[1:]), dtype=torch.uint8).numpy()
    found, expected = (p.predict(stacks, deterministic=True)[0] for p in (policy, model.policy))
    assert (found == expected).mean() >= 0.99  # values that are as good as equal may swap
    assert len(set(expected)) <= model.action_space.n  # type: ignore[attr-defined]
