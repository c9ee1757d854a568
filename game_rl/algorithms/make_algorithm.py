"""From a config to an SB3 algorithm."""

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.dqn import make_dqn
from game_rl.algorithms.ppo import make_ppo
from game_rl.algorithms.pqn import make_pqn
from game_rl.config.algorithms import DQNConfig, PPOConfig, PQNConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import ConfigError
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.allocator import keep_freed_memory


def make_algorithm(
    config: RunConfig,
    vec_env: VecEnv,
    run_dir: RunDir,
    *,
    packing: FramePacking,
    stream: str,
    schedule_timesteps: int | None = None,
) -> BaseAlgorithm:
    """The algorithm of `config`, logging to the run's TensorBoard directory.

    Args:
        packing: of the frames in the stacks that `vec_env` gives.
        stream: the name under which its seed is drawn from the run's.
        schedule_timesteps: what the schedules go over; None: `total_timesteps`.

    Raises:
        ConfigError: `device` names a GPU that is not there.
    """
    keep_freed_memory()  # each gradient step takes again what the one before has freed
    model = _make(
        config,
        vec_env,
        packing=packing,
        seed=seed_for(config.seed, stream),
        schedule_timesteps=schedule_timesteps or config.total_timesteps,
    )
    model.set_logger(configure(str(run_dir.tensorboard), ["tensorboard"]))
    return model


def _make(
    config: RunConfig,
    vec_env: VecEnv,
    *,
    packing: FramePacking,
    seed: int,
    schedule_timesteps: int,
) -> BaseAlgorithm:
    frame_stack, device = config.env.frame_stack, find_device(config.device)
    share = schedule_timesteps / config.total_timesteps
    match config.algorithm:
        case PPOConfig() as ppo:
            return make_ppo(
                ppo,
                vec_env,
                packing=packing,
                frame_stack=frame_stack,
                seed=seed,
                device=device,
                schedule_share=share,
            )
        case DQNConfig() as dqn:
            find_device(dqn.replay.device)  # or say that it is not there
            return make_dqn(
                dqn,
                vec_env,
                packing=packing,
                frame_stack=frame_stack,
                seed=seed,
                device=device,
                schedule_timesteps=schedule_timesteps,
                schedule_share=share,
            )
        case PQNConfig() as pqn:
            return make_pqn(
                pqn,
                vec_env,
                packing=packing,
                frame_stack=frame_stack,
                seed=seed,
                device=device,
                schedule_timesteps=schedule_timesteps,
                schedule_share=share,
            )


def find_device(name: str) -> str:
    """`auto` becomes the first GPU where there is one, else the CPU."""
    n_gpus = torch.cuda.device_count()
    if name == "auto":
        return "cuda" if n_gpus else "cpu"
    if name.startswith("cuda") and int(name.partition(":")[2] or 0) >= n_gpus:
        raise ConfigError(
            f"device is {name}, but PyTorch sees {n_gpus} CUDA device(s); "
            "use device: auto, or install a CUDA build of torch"
        )
    return name
