"""Building an SB3 algorithm from a config: the one place that maps keys to SB3's arguments."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from game_rl import schedules
from game_rl.algorithms.automatic import find_device, placement_of, resolved_on, this_hardware
from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.epsilon_greedy import EpsilonGreedy, make_epsilon_greedy
from game_rl.algorithms.policies import DQNPolicy, LeanCnnPolicy
from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.pqn import PQN
from game_rl.algorithms.reward_scaling import RewardScaling, make_reward_scaling
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.config.algorithms import (
    AlgorithmConfig,
    DQNConfig,
    ExplorationConfig,
    PPOConfig,
    PQNConfig,
)
from game_rl.config.schema import RunConfig
from game_rl.config.values import LinearSchedule, Schedule
from game_rl.envs.observation import ObservationFormat
from game_rl.files.run_dir import RunDir
from game_rl.loggers.make_logger import make_logger
from game_rl.seeds import seed_for
from game_rl.system.placement import Placement
from game_rl.system.process_memory import keep_freed_memory


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """Everything that an algorithm needs in addition to its section of the config.

    Attributes:
        observation_format: of what `vec_env` returns.
        placement: device and number format of the network.
        schedule_timesteps: timesteps over which schedules run.
        schedule_share: these timesteps as a share of the training.
    """

    vec_env: VecEnv
    observation_format: ObservationFormat
    seed: int
    placement: Placement
    schedule_timesteps: int
    schedule_share: float = 1.0

    @property
    def buffer_kwargs(self) -> dict[str, Any]:
        """What our buffers need besides SB3's arguments, for its `*_buffer_kwargs`."""
        return {"observation_format": self.observation_format}

    def schedule(self, value: Schedule) -> schedules.Schedule:
        if isinstance(value, LinearSchedule):
            line = schedules.linear(value.start, value.end)
            return schedules.ending_early(line, self.schedule_share)
        return schedules.constant(value)

    def reward_scaling(self, config: AlgorithmConfig) -> RewardScaling | None:
        n_envs = self.vec_env.num_envs
        return make_reward_scaling(config.reward, gamma=config.gamma, n_envs=n_envs)

    def exploration(self, config: ExplorationConfig, *, seed: int) -> EpsilonGreedy:
        n_actions = int(self.vec_env.action_space.n)  # type: ignore[attr-defined]  # buttons are discrete
        return make_epsilon_greedy(
            config, timesteps=self.schedule_timesteps, n_actions=n_actions, seed=seed
        )


def order_channels_last(model: BaseAlgorithm) -> None:
    """Store the weights channels_last, which makes convolutions faster."""
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it


def make_algorithm(
    config: RunConfig,
    vec_env: VecEnv,
    run_dir: RunDir,
    *,
    observation_format: ObservationFormat,
    stream: str,
    schedule_timesteps: int | None = None,
) -> BaseAlgorithm:
    """Build the algorithm of `config`, which logs as its section `logging` says.

    Args:
        observation_format: of what `vec_env` returns.
        stream: name under which the algorithm's seed is derived from the run's.
        schedule_timesteps: timesteps over which the schedules run, or None for `total_timesteps`.

    Raises:
        ConfigError: `device` names a GPU that does not exist.
    """
    config = resolved_on(config, observation_format, this_hardware())
    keep_freed_memory()  # each gradient step allocates what the previous one freed
    schedule_timesteps = schedule_timesteps or config.total_timesteps
    context = BuildContext(
        vec_env=vec_env,
        observation_format=observation_format,
        seed=seed_for(config.seed, stream),
        placement=placement_of(config),
        schedule_timesteps=schedule_timesteps,
        schedule_share=schedule_timesteps / config.total_timesteps,
    )
    model = _make(config.algorithm, context)
    model.set_logger(make_logger(config.logging, run_dir))
    return model


def _make(config: AlgorithmConfig, context: BuildContext) -> BaseAlgorithm:
    match config:
        case PPOConfig():
            return make_ppo(config, context)
        case DQNConfig():
            find_device(config.replay.device)  # raises if it does not exist
            return make_dqn(config, context)
        case PQNConfig():
            return make_pqn(config, context)


def make_dqn(config: DQNConfig, context: BuildContext) -> LeanDQN:
    vec_env = context.vec_env
    placement = context.placement
    replay_seed, exploration_seed = np.random.SeedSequence(context.seed).generate_state(2).tolist()
    model = LeanDQN(
        DQNPolicy,
        vec_env,
        double_q=config.double_q,
        exploration=context.exploration(config.exploration, seed=exploration_seed),
        reward_scaling=context.reward_scaling(config),
        learning_rate=context.schedule(config.learning_rate),
        buffer_size=config.replay.capacity,
        learning_starts=config.learning_starts,
        batch_size=config.batch_size,
        tau=config.tau,
        gamma=config.gamma,
        train_freq=config.train_freq,
        gradient_steps=config.gradient_steps,
        replay_buffer_class=PackedReplayBuffer,
        replay_buffer_kwargs={
            **context.buffer_kwargs,
            "n_step": config.n_step,
            "gamma": config.gamma,
            "frames_device": config.replay.device,
            "sampling_seed": replay_seed,
        },
        target_update_interval=max(config.target_update_interval, vec_env.num_envs),
        max_grad_norm=config.max_grad_norm,
        stats_window_size=config.stats_window_size,
        policy_kwargs={
            "layer_norm": config.layer_norm,
            "network": config.network,
            "precision": placement.precision,
        },
        seed=context.seed,
        device=placement.device,
    )
    order_channels_last(model)
    return model


def make_ppo(config: PPOConfig, context: BuildContext) -> LeanPPO:
    """Build PPO from a config whose `micro_batch_size: auto` was resolved by `make_algorithm`.

    An `auto` that is still there means the whole minibatch.
    """
    schedule = context.schedule
    placement = context.placement
    model = LeanPPO(
        LeanCnnPolicy,
        context.vec_env,
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        micro_batch_size=None if config.micro_batch_size == "auto" else config.micro_batch_size,
        reward_scaling=context.reward_scaling(config),
        n_epochs=config.n_epochs,
        learning_rate=schedule(config.learning_rate),
        clip_range=schedule(config.clip_range),
        clip_range_vf=None if config.clip_range_vf is None else schedule(config.clip_range_vf),
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        normalize_advantage=config.normalize_advantage,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl,
        stats_window_size=config.stats_window_size,
        rollout_buffer_class=PackedRolloutBuffer,
        rollout_buffer_kwargs=context.buffer_kwargs,
        policy_kwargs={"network": config.network, "precision": placement.precision},
        seed=context.seed,
        device=placement.device,
    )
    order_channels_last(model)
    return model


def make_pqn(config: PQNConfig, context: BuildContext) -> PQN:
    seed = context.seed
    placement = context.placement
    model = PQN(
        context.vec_env,
        learning_rate=context.schedule(config.learning_rate),
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        q_lambda=config.q_lambda,
        max_grad_norm=config.max_grad_norm,
        exploration=context.exploration(config.exploration, seed=seed),
        reward_scaling=context.reward_scaling(config),
        rollout_buffer_kwargs=context.buffer_kwargs,
        policy_kwargs={
            "layer_norm": config.layer_norm,
            "network": config.network,
            "precision": placement.precision,
        },
        stats_window_size=config.stats_window_size,
        seed=seed,
        device=placement.device,
    )
    order_channels_last(model)
    return model
