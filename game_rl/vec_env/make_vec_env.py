"""The one place where environments are put together, for training and for evaluation."""

import functools

from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import Game
from game_rl.resources import effective_cpus
from game_rl.vec_env.vec_env import SharedMemoryVecEnv


def make_vec_env(config: EnvConfig, game: Game, *, n_envs: int, seed: int) -> VecEnv:
    """Workers, then episode returns: uint8 [n_envs, frame_stack * C, H, W].

    Env i has the seed `seed + i` at its first reset. `n_envs` is not `config.n_envs` in evaluation.
    """
    env_fn = functools.partial(make_env, config, game)
    vec_env: VecEnv = SharedMemoryVecEnv(
        [env_fn] * n_envs,
        frame_stack=config.frame_stack,
        n_workers=config.n_workers or effective_cpus(),
        timeout_s=config.worker_timeout_s,
    )
    vec_env = VecMonitor(vec_env)
    vec_env.seed(seed)
    return vec_env
