"""SB3's PPO on packed storage, with rollouts and gradient steps spread over the cores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional

from game_rl.algorithms.data_parallel import DataParallel, Threads, data_parallel
from game_rl.algorithms.observation_batches import observation_batch, observation_tensors
from game_rl.algorithms.reward_scaling import (
    RewardScaling,
    observed_rewards,
    reward_state,
    take_reward_state,
)
from game_rl.algorithms.rollout import Decision, VecStep, feed_vec_step, vec_steps
from game_rl.buffers.feed import Feed
from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer
from game_rl.envs.observation import Observation
from game_rl.vec_env.halved_vec_env import HalvedVecEnv


@dataclass(frozen=True)
class _Losses:
    """Values that a gradient step logs under SB3's names; means over the minibatch."""

    policy_gradient_loss: float = 0.0
    value_loss: float = 0.0
    entropy_loss: float = 0.0
    loss: float = 0.0
    clip_fraction: float = 0.0
    approx_kl: float = 0.0

    def plus(self, other: "_Losses") -> "_Losses":
        return _Losses(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class LeanPPO(PPO):
    """SB3's PPO whose rollouts and gradient steps keep all cores busy; for Discrete actions.

    On a HalvedVecEnv emulators and network work at the same time. The rollout is the one that they
    would produce in turns (see `vec_steps`), and differs from SB3's only in the order in which
    random numbers are drawn. On any other vec env SB3's own code collects the rollout.

    A minibatch is processed in parts, with one gradient step for the whole. The gradient equals the
    minibatch's up to rounding: advantages are normalised over the whole minibatch, and the mean
    losses of each part are weighted by its share. On the CPU each core takes a part. Only
    `micro_batch_size` samples are unpacked at a time, or the whole minibatch if it is None.

    Attributes:
        feeds: get every timestep. With feeds, a rollout on any other vec env equals SB3's up to
            the rounding of the values of truncated episodes' last observations.
        reward_scaling: makes the rewards to learn from; None if they are those of the game.
    """

    rollout_buffer: PackedRolloutBuffer
    feeds: Sequence[Feed] = ()

    def __init__(  # PPO's own thirty arguments are passed through
        self,
        *arguments: Any,  # noqa: ANN401
        micro_batch_size: int | None,
        reward_scaling: RewardScaling | None = None,
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.micro_batch_size = micro_batch_size
        self.reward_scaling = reward_scaling
        self._threads = Threads()

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """As PPO.collect_rollouts, with the same callback calls and the same local variables."""
        if not (isinstance(env, HalvedVecEnv) or self.feeds or self.reward_scaling):
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        last_obs = self._last_obs
        last_dones = self._last_episode_starts
        assert last_obs is not None
        assert last_dones is not None
        assert isinstance(rollout_buffer, PackedRolloutBuffer)
        form = rollout_buffer.observation_format
        steps = vec_steps(env, last_obs, self._decide, n_rollout_steps, observation_format=form)
        for step in steps:
            new_obs, rewards, dones, infos = step.outcome
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            feed_vec_step(self.feeds, last_obs, step)
            rewards = self._learned_rewards(step)
            actions, values, log_probs = step.decision
            rollout_buffer.add(
                last_obs, actions, rewards, last_dones, values, log_probs, frames=step.frames
            )
            self._last_obs = last_obs = new_obs
            self._last_episode_starts = last_dones = dones
        rollout_buffer.compute_returns_and_advantage(self._values(last_obs), last_dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _decide(self, observations: Observation) -> Decision:
        with torch.no_grad():
            actions, values, log_probs = self.policy(observation_tensors(observations, self.device))
        return Decision(actions.cpu().numpy(), values, log_probs)

    def _values(self, observations: Observation) -> torch.Tensor:
        with torch.no_grad():
            return self.policy.predict_values(observation_tensors(observations, self.device))

    def _learned_rewards(self, step: VecStep) -> NDArray[np.float32]:
        """Return the rewards to learn from.

        The discounted value of a truncated episode's last state is added (SB3 issue 633).
        """
        _, rewards, dones, infos = step.outcome
        rewards = observed_rewards(self.reward_scaling, rewards, dones)
        for number in np.flatnonzero(step.truncated):
            last = infos[number]["terminal_observation"]
            rewards[number] += self.gamma * self._values(observation_batch([last])).item()
        return rewards

    def train(self) -> None:
        """As PPO.train, with the same loss, early stop and curves; does nothing for no epochs."""
        if not self.n_epochs:
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        steps: list[_Losses] = []
        last_epoch: list[_Losses] = []
        with data_parallel(self.policy.parameters(), self.device, self._threads) as parallel:
            for _ in range(self.n_epochs):
                last_epoch = list(self._epoch(parallel))
                steps += last_epoch
                self._n_updates += 1
                if self._is_far(last_epoch[-1].approx_kl):
                    break
        self._log(steps, last_epoch)

    def _epoch(self, parallel: DataParallel) -> Iterator[_Losses]:
        """Take a gradient step on each minibatch until the policy has moved too far."""
        for indices in self.rollout_buffer.minibatches(self.batch_size):
            losses = self._backward(parallel, indices)
            yield losses
            if self._is_far(losses.approx_kl):
                return
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()

    def _is_far(self, approx_kl: float) -> bool:
        return self.target_kl is not None and approx_kl > 1.5 * self.target_kl

    def _backward(self, parallel: DataParallel, indices: Indices) -> _Losses:
        """Leave the gradient of the minibatch's loss in the parameters."""
        advantages = torch.from_numpy(self.rollout_buffer.advantages[indices].flatten())
        if self.normalize_advantage and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

        def loss_of(part: slice) -> tuple[torch.Tensor, _Losses]:
            samples = self.rollout_buffer.samples(indices[part])
            samples = samples._replace(advantages=advantages[part].to(self.device))
            return self._share_of_loss(samples, len(indices))

        losses = parallel.gradient(
            loss_of,
            n_samples=len(indices),
            micro_batch_size=self.micro_batch_size or len(indices),
        )
        return reduce(_Losses.plus, losses)

    def _share_of_loss(
        self, part: RolloutBufferSamples, batch_size: int
    ) -> tuple[torch.Tensor, _Losses]:
        """Return a part's share of the minibatch's loss and of the log, by PPO.train's formulas."""
        clip_range, clip_range_vf = self._clip_ranges()
        values, log_prob, entropy = self.policy.evaluate_actions(
            part.observations, part.actions.long().flatten()
        )
        ratio = torch.exp(log_prob - part.old_log_prob)
        clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
        policy_loss = -torch.min(part.advantages * ratio, part.advantages * clipped).mean()
        values = values.flatten()
        if clip_range_vf is not None:
            change = (values - part.old_values).clamp(-clip_range_vf, clip_range_vf)
            values = part.old_values + change
        value_loss = functional.mse_loss(part.returns, values)
        assert entropy is not None  # LeanCnnPolicy returns one
        entropy_loss = -entropy.mean()
        loss = policy_loss + self.ent_coef * entropy_loss + self.vf_coef * value_loss
        share = len(values) / batch_size
        with torch.no_grad():
            log_ratio = log_prob - part.old_log_prob
            approx_kl = (ratio - 1 - log_ratio).mean()  # http://joschu.net/blog/kl-approx.html
            clip_fraction = ((ratio - 1).abs() > clip_range).float().mean()
        means = (policy_loss, value_loss, entropy_loss, loss, clip_fraction, approx_kl)
        return share * loss, _Losses(*(share * mean.item() for mean in means))

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable.

        Weights, optimiser and counters are not in it.
        """
        return reward_state(self.reward_scaling)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        take_reward_state(self.reward_scaling, state)

    def _clip_ranges(self) -> tuple[float, float | None]:
        """Return the present clip ranges of the probability ratio and of the value function."""
        remaining = self._current_progress_remaining
        of_values = None if self.clip_range_vf is None else self.clip_range_vf(remaining)  # type: ignore[operator]  # a schedule since setup
        return self.clip_range(remaining), of_values  # type: ignore[operator]

    def _log(self, steps: list[_Losses], last_epoch: list[_Losses]) -> None:
        for name in ("entropy_loss", "policy_gradient_loss", "value_loss", "clip_fraction"):
            self.logger.record(f"train/{name}", np.mean([getattr(step, name) for step in steps]))
        approx_kl = np.mean([step.approx_kl for step in last_epoch])
        self.logger.record("train/approx_kl", approx_kl)
        self.logger.record("train/loss", steps[-1].loss)
        buffer = self.rollout_buffer
        variance = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        self.logger.record("train/explained_variance", variance)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        clip_range, clip_range_vf = self._clip_ranges()
        self.logger.record("train/clip_range", clip_range)
        if clip_range_vf is not None:
            self.logger.record("train/clip_range_vf", clip_range_vf)
