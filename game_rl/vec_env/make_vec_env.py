"""Assembly of the vec envs for training and for evaluation; no other module does it."""

import functools

from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env, make_observation_format
from game_rl.games.definition import Game
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.workers import evaluation_workers, training_workers


def make_vec_env(config: EnvConfig, game: Game, *, n_envs: int, seed: int) -> VecEnv:
    """Return a vec env with worker processes and episode returns in its infos.

    Observations are uint8 [n_envs, frame_stack * C, H, W]. The first reset of env i uses the seed
    `seed + i`. In evaluation, `n_envs` differs from `config.n_envs`.
    """
    n_workers = evaluation_workers(config.n_workers, n_envs=n_envs, cpus=effective_cpus())
    vec_env = VecMonitor(_part(config, game, n_envs=n_envs, n_workers=n_workers))
    vec_env.seed(seed)
    return vec_env


def make_training_env(config: EnvConfig, game: Game, *, seed: int) -> VecEnv:
    """Return a vec env like `make_vec_env`'s, in two halves if there are workers for both.

    The halves can be stepped separately, and their workers also pack the frames for the buffers.
    With a single worker there is nothing to gain: it would pack while the training process waits,
    so that process packs the frames.
    """
    n_workers = training_workers(config.n_workers, n_envs=config.n_envs, cpus=effective_cpus())
    if n_workers < 2:
        return make_vec_env(config, game, n_envs=config.n_envs, seed=seed)
    first, first_workers = (config.n_envs + 1) // 2, (n_workers + 1) // 2
    sizes = (first, first_workers), (config.n_envs - first, n_workers - first_workers)
    parts = []
    try:
        for n_envs, workers in sizes:
            parts.append(_part(config, game, n_envs=n_envs, n_workers=workers, packs=True))
    except BaseException:
        for part in parts:
            part.close()
        raise
    vec_env = HalvedVecEnv(*parts)
    vec_env.seed(seed)
    return vec_env


def _part(
    config: EnvConfig, game: Game, *, n_envs: int, n_workers: int, packs: bool = False
) -> SharedMemoryVecEnv:
    observation_format = make_observation_format(config, game)
    return SharedMemoryVecEnv(
        [functools.partial(make_env, config, game)] * n_envs,
        frame_stack=observation_format.stack,
        packing=observation_format.screen if packs else None,
        n_workers=n_workers,
        timeout_s=config.worker_timeout_s,
        lost_info={} if game.definition.success is None else {"is_success": False},
    )
