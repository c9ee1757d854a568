"""What this project asks of an algorithm beyond SB3's interface, and what one is built from."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from game_rl import schedules
from game_rl.algorithms.demonstrations import Imitating, Imitation
from game_rl.algorithms.policies import policy_values
from game_rl.algorithms.reward_scaling import (
    RewardScaling,
    make_reward_scaling,
    reward_state,
    take_reward_state,
)
from game_rl.algorithms.rollout import Decision, EpsilonGreedy, VecStep, feed_vec_step, vec_steps
from game_rl.buffers.layout import Feed
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.buffers.unpacking import Tensors
from game_rl.config.algorithms import AlgorithmConfig, ExplorationConfig
from game_rl.config.values import LinearSchedule, Schedule
from game_rl.envs.observation import Observation, ObservationFormat
from game_rl.system.placement import Placement


class LeanAlgorithm(BaseAlgorithm):
    """An algorithm of SB3's on packed storage.

    Attributes:
        feeds: get every timestep, with the rewards of the game.
        reward_scaling: makes the rewards to learn from; None if they are those of the game.
        imitating: what learns from played episodes while the run plays, if anything does.
    """

    feeds: Sequence[Feed] = ()
    reward_scaling: RewardScaling | None = None
    imitating: Imitating | None = None

    @property
    def acting_network(self) -> nn.Module:
        """The module that is called to choose actions."""
        return self.policy

    def shown_values(self) -> NDArray[np.float32]:
        """Return the `policy_values` of the observations before the present vec step.

        To be called by a callback, once the vec step is over.
        """
        assert self._last_obs is not None
        return policy_values(self, self._last_obs)

    def env_arrays(self) -> Mapping[str, NDArray[np.float32]]:
        """Return what it keeps of the running episodes by name, each with a row for each env."""
        return {}

    def load_env_arrays(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        """Restore what `env_arrays` returned."""

    @abstractmethod
    def play(self, callback: BaseCallback) -> int:
        """Collect what is learned from in one update, as `learn` does; return the vec steps."""

    @abstractmethod
    def update(self) -> None:
        """Learn once from what was collected, as `learn` does."""

    @abstractmethod
    def imitation(
        self, observations: Tensors, actions: torch.Tensor, *, margin: float
    ) -> Imitation:
        """Compare the network with a player's actions, int64 [batch, 1]; may run in any thread.

        Args:
            margin: of the large margin, for an algorithm with values of actions.
        """

    def _record_imitation(self, losses: Sequence[tuple[float, int]], n: int) -> None:
        """Record the means of what `imitation` returned, each for `n` played timesteps in all."""
        if self.imitating is not None and losses:
            self.logger.record("imitate/weight", self.imitating.weight_at(self.num_timesteps))
            self.logger.record("imitate/loss", sum(loss for loss, _ in losses) / n)
            self.logger.record("imitate/accuracy", sum(right for _, right in losses) / n)

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable.

        Weights, optimiser, counters and replay are not in it.
        """
        state = reward_state(self.reward_scaling)
        if self.imitating is not None:
            state["played"] = self.imitating.demonstrations.state()
        return state

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state, or the statistics of rewards alone."""
        take_reward_state(self.reward_scaling, state)
        self._load_played(state)

    def _load_played(self, state: Mapping[str, Any]) -> None:
        if self.imitating is not None and "played" in state:
            self.imitating.demonstrations.load_state(state["played"])


class LeanOnPolicy(LeanAlgorithm, OnPolicyAlgorithm):
    """An algorithm that learns from each rollout once.

    On a HalvedVecEnv one half of the envs plays while the network chooses actions for the other
    (see `vec_steps`).
    """

    rollout_buffer: PackedRolloutBuffer

    @abstractmethod
    def _decide(
        self, observations: Observation, rows: slice, begins: NDArray[np.bool_]
    ) -> Decision:
        """Choose actions for the observations of these envs; see `Decide`."""

    @abstractmethod
    def _learned_rewards(self, row: int, step: VecStep) -> NDArray[np.float32]:
        """Return the rewards to learn from, of the vec step with this number in the rollout."""

    @abstractmethod
    def _end_rollout(self, last_obs: Observation, last_dones: NDArray[np.bool_]) -> None:
        """Compute what the rollout is learned with."""

    def _begin_rollout(self, n_steps: int) -> None:
        """Prepare for a rollout of `n_steps` vec steps, before its first action."""

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """As OnPolicyAlgorithm.collect_rollouts, with the same callbacks and local variables."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        last_obs = self._last_obs
        last_dones = self._last_episode_starts
        assert last_obs is not None
        assert last_dones is not None
        assert isinstance(rollout_buffer, PackedRolloutBuffer)
        self._begin_rollout(n_rollout_steps)
        form = rollout_buffer.observation_format
        steps = vec_steps(
            env,
            last_obs,
            self._decide,
            n_rollout_steps,
            begins=last_dones,
            observation_format=form,
        )
        for n_steps, step in enumerate(steps):
            new_obs, rewards, dones, infos = step.outcome
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            feed_vec_step(self.feeds, last_obs, step)
            rewards = self._learned_rewards(n_steps, step)
            actions, values, log_probs = step.decision
            rollout_buffer.add(
                last_obs, actions, rewards, last_dones, values, log_probs, frames=step.frames
            )
            self._last_obs = last_obs = new_obs
            self._last_episode_starts = last_dones = dones
        self._end_rollout(last_obs, last_dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def play(self, callback: BaseCallback) -> int:
        assert self.env is not None
        self.collect_rollouts(self.env, callback, self.rollout_buffer, n_rollout_steps=self.n_steps)
        return self.n_steps

    def update(self) -> None:
        self.logger.dump(self.num_timesteps)
        self.train()


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
        return EpsilonGreedy(
            config.schedule(timesteps=self.schedule_timesteps),
            n_actions=int(self.vec_env.action_space.n),  # type: ignore[attr-defined]  # buttons are discrete
            rng=np.random.default_rng(seed),
        )


def order_channels_last(model: BaseAlgorithm) -> None:
    """Store the weights channels_last, which makes convolutions faster."""
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
