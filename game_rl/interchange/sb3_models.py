"""Models of plain Stable-Baselines3 that correspond to a run."""

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.utils import LinearSchedule

from game_rl.config import values
from game_rl.config.algorithms import DQNConfig, PPOConfig, ReplayConfig
from game_rl.config.schema import RunConfig
from game_rl.config.values import Schedule
from game_rl.interchange.sb3_limits import exchangeable
from game_rl.vec_env.spaces_env import SpacesEnv


def plain_model(config: RunConfig, env: SpacesEnv) -> PPO | DQN:
    """Return an untrained SB3 model with the run's settings.

    A DQN has a replay of one timestep, because SB3 allocates the whole replay when it loads the
    zip; `DQN.load(..., buffer_size=...)` chooses another size. `n_step` is left out, as SB3 warns
    about a saved one, and so is `double_q`, which SB3 does not have.
    """
    algorithm = exchangeable(config)
    model: PPO | DQN
    match algorithm:
        case PPOConfig():
            model = _plain_ppo(algorithm, env)
        case DQNConfig():
            model = _plain_dqn(algorithm, env)
    model.n_envs, model.batch_size = config.env.n_envs, algorithm.batch_size
    model.gamma, model.max_grad_norm = algorithm.gamma, algorithm.max_grad_norm
    return model


def _plain_ppo(algorithm: PPOConfig, env: SpacesEnv) -> PPO:
    clip_vf = algorithm.clip_range_vf
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=2,
        batch_size=2,
        learning_rate=_sb3_schedule(algorithm.learning_rate),
        clip_range=_sb3_schedule(algorithm.clip_range),
        clip_range_vf=None if clip_vf is None else _sb3_schedule(clip_vf),
        normalize_advantage=algorithm.normalize_advantage,
        stats_window_size=algorithm.stats_window_size,
        device="cpu",
    )
    model.n_steps, model.n_epochs = algorithm.n_steps, algorithm.n_epochs
    model.gae_lambda, model.target_kl = algorithm.gae_lambda, algorithm.target_kl
    model.ent_coef, model.vf_coef = algorithm.ent_coef, algorithm.vf_coef
    return model


def _plain_dqn(algorithm: DQNConfig, env: SpacesEnv) -> DQN:
    model = DQN(
        "CnnPolicy",
        env,
        learning_rate=_sb3_schedule(algorithm.learning_rate),
        buffer_size=1,
        train_freq=algorithm.train_freq,
        target_update_interval=algorithm.target_update_interval,
        exploration_fraction=algorithm.exploration.fraction,
        exploration_initial_eps=algorithm.exploration.start,
        exploration_final_eps=algorithm.exploration.end,
        stats_window_size=algorithm.stats_window_size,
        device="cpu",
    )
    model.learning_starts, model.tau = algorithm.learning_starts, algorithm.tau
    model.gradient_steps = algorithm.gradient_steps
    return model


def _sb3_schedule(value: Schedule) -> float | LinearSchedule:
    """Convert a schedule to SB3's class, so the zip can be read where game_rl is not installed."""
    if isinstance(value, values.LinearSchedule):
        return LinearSchedule(value.start, value.end, end_fraction=1.0)
    return value


def shrunk(config: RunConfig) -> RunConfig:
    """Return the config with a minimal rollout or replay, for a model that will not be trained."""
    algorithm = exchangeable(config)
    if isinstance(algorithm, PPOConfig):
        small = algorithm.model_copy(update={"n_steps": 2, "batch_size": 2})
        return config.model_copy(update={"algorithm": small})
    least = config.env.n_envs * (algorithm.n_step + 1)
    replay = ReplayConfig(capacity=least)
    return config.model_copy(update={"algorithm": algorithm.model_copy(update={"replay": replay})})
