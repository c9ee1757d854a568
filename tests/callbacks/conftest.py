"""A real PPO on a tiny env; a rollout is n_envs x 4 timesteps."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from game_rl.run_dir import RunDir
from tests.tiny_env import TinyEnv

N_STEPS = 4


def tiny_vec_env(n_envs: int = 2) -> VecEnv:
    return VecMonitor(DummyVecEnv([TinyEnv] * n_envs))


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


@pytest.fixture
def make_model(run_dir: RunDir) -> Iterator[Callable[..., PPO]]:
    models: list[PPO] = []

    def make(n_envs: int = 2, seed: int = 0) -> PPO:
        model = PPO(
            "CnnPolicy",
            tiny_vec_env(n_envs),
            n_steps=N_STEPS,
            batch_size=N_STEPS,
            n_epochs=1,
            seed=seed,
            device="cpu",
            policy_kwargs={"features_extractor_kwargs": {"features_dim": 8}},
        )
        model.set_logger(configure(str(run_dir.tensorboard), ["csv"]))
        models.append(model)
        return model

    yield make
    for model in models:
        model.logger.close()
