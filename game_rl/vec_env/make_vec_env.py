"""The one place where environments are put together, for training and for evaluation."""

import functools

from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env, make_frame_format
from game_rl.envs.packing import FramePacking
from game_rl.games.definition import Game
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.worker_count import evaluation_workers, training_workers


def make_vec_env(config: EnvConfig, game: Game, *, n_envs: int, seed: int) -> VecEnv:
    """Workers, then episode returns: uint8 [n_envs, frame_stack * C, H, W].

    Env i has the seed `seed + i` at its first reset. `n_envs` is not `config.n_envs` in evaluation.
    """
    n_workers = evaluation_workers(config.n_workers, n_envs=n_envs, cpus=effective_cpus())
    vec_env = VecMonitor(_part(config, game, n_envs=n_envs, n_workers=n_workers))
    vec_env.seed(seed)
    return vec_env


def make_training_env(config: EnvConfig, game: Game, *, seed: int) -> VecEnv:
    """As `make_vec_env`, in two halves that can play apart, if there are workers for both.

    Workers of halves pack the frames for the buffers. A single worker could only do it in the
    training process's stead, while that waits.
    """
    n_workers = training_workers(config.n_workers, n_envs=config.n_envs, cpus=effective_cpus())
    if n_workers < 2:
        return make_vec_env(config, game, n_envs=config.n_envs, seed=seed)
    first, first_workers = (config.n_envs + 1) // 2, (n_workers + 1) // 2
    packing = make_frame_format(config.observation, game).packing
    sizes = (first, first_workers), (config.n_envs - first, n_workers - first_workers)
    parts = []
    try:
        for n_envs, workers in sizes:
            part = _part(config, game, n_envs=n_envs, n_workers=workers, packing=packing)
            parts.append(part)
    except BaseException:
        for part in parts:
            part.close()
        raise
    vec_env = HalvedVecEnv(*parts)
    vec_env.seed(seed)
    return vec_env


def _part(
    config: EnvConfig,
    game: Game,
    *,
    n_envs: int,
    n_workers: int,
    packing: FramePacking | None = None,
) -> SharedMemoryVecEnv:
    return SharedMemoryVecEnv(
        [functools.partial(make_env, config, game)] * n_envs,
        frame_stack=config.frame_stack,
        packing=packing,
        n_workers=n_workers,
        timeout_s=config.worker_timeout_s,
        lost_info={} if game.definition.success is None else {"is_success": False},
    )
