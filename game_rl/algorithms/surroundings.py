"""The parts of a training that every algorithm is built from."""

from dataclasses import dataclass
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from game_rl import schedules
from game_rl.algorithms.exploration import Exploration, make_exploration
from game_rl.algorithms.make_schedule import make_schedule
from game_rl.config.exploration import ExplorationConfig
from game_rl.config.values import Schedule
from game_rl.envs.packing import FramePacking
from game_rl.system.placement import Placement


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Everything that an algorithm needs in addition to its section of the config.

    Attributes:
        vec_env: returns stacks of `frame_stack` frames.
        packing: of one of those frames.
        placement: device and number format of the network.
        schedule_timesteps: timesteps over which schedules run.
        schedule_share: these timesteps as a share of the training.
    """

    vec_env: VecEnv
    packing: FramePacking
    frame_stack: int
    seed: int
    placement: Placement
    schedule_timesteps: int
    schedule_share: float = 1.0

    @property
    def frames(self) -> dict[str, Any]:
        """The frame format that our buffers need, for SB3's `*_buffer_kwargs`."""
        return {"packing": self.packing, "frame_stack": self.frame_stack}

    def schedule(self, value: Schedule) -> schedules.Schedule:
        return make_schedule(value, self.schedule_share)

    def exploration(self, config: ExplorationConfig, *, seed: int) -> Exploration:
        n_actions = int(self.vec_env.action_space.n)  # type: ignore[attr-defined]  # buttons are discrete
        return make_exploration(
            config, timesteps=self.schedule_timesteps, n_actions=n_actions, seed=seed
        )


def order_channels_last(model: BaseAlgorithm) -> None:
    """Store the weights channels_last, which makes NatureCNN's update faster."""
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
