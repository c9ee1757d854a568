"""SB3's PPO, built from its config."""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.common.vec_env import VecEnv

from game_rl import schedules
from game_rl.algorithms.networks import features_extractor
from game_rl.config.schema import LinearSchedule, PPOConfig, Schedule


def make_ppo(config: PPOConfig, vec_env: VecEnv, *, seed: int, device: str) -> PPO:
    model = PPO(
        ActorCriticCnnPolicy,
        vec_env,
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        learning_rate=_schedule(config.learning_rate),
        clip_range=_schedule(config.clip_range),
        clip_range_vf=None if config.clip_range_vf is None else _schedule(config.clip_range_vf),
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        normalize_advantage=config.normalize_advantage,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl,
        stats_window_size=config.stats_window_size,
        policy_kwargs={
            "features_extractor_class": features_extractor(config.precision, device),
            "net_arch": [],  # CnnPolicy's own choice for NatureCNN, not made for a subclass of it
        },
        seed=seed,
        device=device,
    )
    # the same numbers in another order in memory: NatureCNN's update is faster so
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    return model


def _schedule(value: Schedule) -> schedules.Schedule:
    if isinstance(value, LinearSchedule):
        return schedules.linear(value.start, value.end)
    return schedules.constant(value)
