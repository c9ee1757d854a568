"""SB3's PPO on lean storage, built from its config."""

from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from game_rl import schedules
from game_rl.algorithms.make_schedule import make_schedule
from game_rl.algorithms.micro_batch_ppo import MicroBatchPPO
from game_rl.algorithms.networks import LeanCnnPolicy, find_precision, policy_arguments
from game_rl.buffers.rollout import PackedRolloutBuffer
from game_rl.config.algorithms import PPOConfig
from game_rl.config.values import Schedule
from game_rl.envs.packing import FramePacking


def make_ppo(
    config: PPOConfig,
    vec_env: VecEnv,
    *,
    packing: FramePacking,
    frame_stack: int,
    seed: int,
    device: str,
    schedule_share: float = 1.0,
) -> PPO:
    """PPO for stacks of `frame_stack` frames that `packing` describes.

    `schedule_share` is how much of the training its schedules go over.
    """

    def schedule(value: Schedule) -> schedules.Schedule:
        return make_schedule(value, schedule_share)

    arguments: dict[str, Any] = {
        "n_steps": config.n_steps,
        "batch_size": config.batch_size,
        "n_epochs": config.n_epochs,
        "learning_rate": schedule(config.learning_rate),
        "clip_range": schedule(config.clip_range),
        "clip_range_vf": None if config.clip_range_vf is None else schedule(config.clip_range_vf),
        "gamma": config.gamma,
        "gae_lambda": config.gae_lambda,
        "normalize_advantage": config.normalize_advantage,
        "ent_coef": config.ent_coef,
        "vf_coef": config.vf_coef,
        "max_grad_norm": config.max_grad_norm,
        "target_kl": config.target_kl,
        "stats_window_size": config.stats_window_size,
        "rollout_buffer_class": PackedRolloutBuffer,
        "rollout_buffer_kwargs": {"packing": packing, "frame_stack": frame_stack},
        "policy_kwargs": policy_arguments(find_precision(config.precision, device)),
        "seed": seed,
        "device": device,
    }
    model = MicroBatchPPO(
        LeanCnnPolicy, vec_env, micro_batch_size=config.micro_batch_size, **arguments
    )
    # the same numbers in another order in memory: NatureCNN's update is faster so
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    return model
