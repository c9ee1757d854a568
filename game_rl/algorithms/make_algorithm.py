"""Building an SB3 algorithm from a config."""

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.automatic import resolved_on
from game_rl.algorithms.dqn import make_dqn
from game_rl.algorithms.networks import this_hardware
from game_rl.algorithms.ppo import make_ppo
from game_rl.algorithms.pqn import make_pqn
from game_rl.algorithms.surroundings import Surroundings
from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, PPOConfig, PQNConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import ConfigError
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.allocator import keep_freed_memory
from game_rl.system.placement import Placement, find_placement, is_gpu_missing


def make_algorithm(
    config: RunConfig,
    vec_env: VecEnv,
    run_dir: RunDir,
    *,
    packing: FramePacking,
    stream: str,
    schedule_timesteps: int | None = None,
) -> BaseAlgorithm:
    """Build the algorithm of `config`, which logs to the run's TensorBoard directory.

    Args:
        packing: of the frames in the stacks that `vec_env` returns.
        stream: name under which the algorithm's seed is derived from the run's.
        schedule_timesteps: timesteps over which the schedules run, or None for `total_timesteps`.

    Raises:
        ConfigError: `device` names a GPU that does not exist.
    """
    shape = vec_env.observation_space.shape
    assert shape is not None  # the space is a Box, which has a shape
    config = resolved_on(config, shape, this_hardware())
    keep_freed_memory()  # each gradient step allocates what the previous one freed
    schedule_timesteps = schedule_timesteps or config.total_timesteps
    surroundings = Surroundings(
        vec_env=vec_env,
        packing=packing,
        frame_stack=config.env.frame_stack,
        seed=seed_for(config.seed, stream),
        placement=placement_of(config),
        schedule_timesteps=schedule_timesteps,
        schedule_share=schedule_timesteps / config.total_timesteps,
    )
    model = _make(config.algorithm, surroundings)
    model.set_logger(configure(str(run_dir.tensorboard), ["tensorboard"]))
    return model


def _make(config: AlgorithmConfig, surroundings: Surroundings) -> BaseAlgorithm:
    match config:
        case PPOConfig():
            return make_ppo(config, surroundings)
        case DQNConfig():
            find_device(config.replay.device)  # raises if it does not exist
            return make_dqn(config, surroundings)
        case PQNConfig():
            return make_pqn(config, surroundings)


def placement_of(config: RunConfig) -> Placement:
    """Return the device and the number format in which this process computes the network.

    Raises:
        ConfigError: `device` names a GPU that does not exist.
    """
    find_device(config.device)
    return find_placement(
        device=config.device, precision=config.algorithm.precision, hardware=this_hardware()
    )


def find_device(name: str) -> str:
    """Return the device that `name` stands for in this process.

    Raises:
        ConfigError: it is a GPU that does not exist.
    """
    n_gpus = torch.cuda.device_count()
    if is_gpu_missing(name, n_gpus=n_gpus):
        raise ConfigError(
            f"device is {name}, but PyTorch sees {n_gpus} CUDA device(s); "
            "use device: auto, or install a CUDA build of torch"
        )
    return find_placement(device=name, precision="float32", hardware=this_hardware()).device
