"""A real PPO on a tiny env, with rollouts of n_envs x 4 timesteps."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint_state import CheckpointState, FixedState
from game_rl.checkpoints.checkpoint_store import CheckpointStore
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from tests.tiny_env import TinyEnv

N_STEPS = 4
FIXED = FixedState(
    schedule_timesteps=64,
    rom_sha256="00",
    config={},
    game={},
    versions={},
    source_sha256="0" * 64,
    computing={},
)
FIXED_STATE = CheckpointState(num_timesteps=0, n_updates=0, best=None, **vars(FIXED))


def make_checkpoints(
    run_dir: RunDir, every: int, *, keep_last: int = 100, stop: StopRequest | None = None
) -> CheckpointCallback:
    store = CheckpointStore(run_dir, keep_last=keep_last, keep_every_timesteps=None)
    return CheckpointCallback(
        store, stop or make_stop(), EventLog(), every_timesteps=every, fixed=FIXED
    )


def make_stop(deadline_s: float = 1000.0) -> StopRequest:
    stop = StopRequest()
    stop.deadline_s = deadline_s
    return stop


def saved_timesteps(run_dir: RunDir) -> list[int]:
    return sorted(int(path.name) for path in run_dir.checkpoints_newest_first())


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
