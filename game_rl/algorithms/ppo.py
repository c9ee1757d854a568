"""SB3's PPO on packed storage, with rollouts and gradient steps spread over the cores."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional

from game_rl.algorithms.algorithm import BuildContext, LeanOnPolicy, order_channels_last
from game_rl.algorithms.data_parallel import DataParallel, Threads, data_parallel
from game_rl.algorithms.demonstrations import Imitation
from game_rl.algorithms.policies import LeanCnnPolicy
from game_rl.algorithms.reward_scaling import RewardScaling, observed_rewards
from game_rl.algorithms.rollout import Decision, VecStep, plays_in_halves
from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer
from game_rl.buffers.unpacking import Tensors, observation_tensors
from game_rl.config.algorithms import PPOConfig
from game_rl.envs.observation import Observation, observation_batch, rows_of

Outputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


@dataclass(frozen=True)
class Losses:
    """Values that a gradient step logs under SB3's names; means over the minibatch."""

    policy_gradient_loss: float = 0.0
    value_loss: float = 0.0
    entropy_loss: float = 0.0
    loss: float = 0.0
    clip_fraction: float = 0.0
    approx_kl: float = 0.0

    def plus(self, other: "Losses") -> "Losses":
        return Losses(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class LeanPPO(LeanOnPolicy, PPO):
    """SB3's PPO whose rollouts and gradient steps keep all cores busy; for Discrete actions.

    On a HalvedVecEnv emulators and network work at the same time. The rollout is the one that they
    would produce in turns (see `vec_steps`), and differs from SB3's only in the order in which
    random numbers are drawn. So it is with one worker of a training. On any other vec env SB3's own
    code collects the rollout.

    A minibatch is processed in parts, with one gradient step for the whole. The gradient equals the
    minibatch's up to rounding: advantages are normalised over the whole minibatch, and the mean
    losses of each part are weighted by its share. On the CPU each core takes a part. Only
    `micro_batch_size` samples are unpacked at a time, or the whole minibatch if it is None.

    Attributes:
        feeds: with feeds, a rollout on any other vec env equals SB3's up to the rounding of the
            values of truncated episodes' last observations.
    """

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
        if plays_in_halves(env) or self.feeds or self.reward_scaling:
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        return OnPolicyAlgorithm.collect_rollouts(
            self, env, callback, rollout_buffer, n_rollout_steps
        )

    def _decide(
        self,
        observations: Observation,
        rows: slice,  # noqa: ARG002
        begins: NDArray[np.bool_],  # noqa: ARG002
    ) -> Decision:
        with torch.no_grad():
            actions, values, log_probs = self.policy(observation_tensors(observations, self.device))
        return Decision(actions.cpu().numpy(), values, log_probs)

    def _values(self, observations: Observation) -> torch.Tensor:
        with torch.no_grad():
            return self.policy.predict_values(observation_tensors(observations, self.device))

    def _learned_rewards(self, row: int, step: VecStep) -> NDArray[np.float32]:  # noqa: ARG002
        """As `LeanOnPolicy` says.

        The discounted value of a truncated episode's last state is added (SB3 issue 633).
        """
        _, rewards, dones, infos = step.outcome
        rewards = observed_rewards(self.reward_scaling, rewards, dones)
        for number in np.flatnonzero(step.truncated):
            last = infos[number]["terminal_observation"]
            rewards[number] += self.gamma * self._values(observation_batch([last])).item()
        return rewards

    def _end_rollout(self, last_obs: Observation, last_dones: NDArray[np.bool_]) -> None:
        values = self._values(last_obs)
        self.rollout_buffer.compute_returns_and_advantage(values, last_dones)

    def train(self) -> None:
        """As PPO.train, with the same loss, early stop and curves; does nothing for no epochs."""
        if not self.n_epochs:
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        steps: list[Losses] = []
        last_epoch: list[Losses] = []
        self._imitated: list[tuple[float, int]] = []
        with data_parallel(self.policy.parameters(), self.device, self._threads) as parallel:
            for _ in range(self.n_epochs):
                last_epoch = list(self._epoch(parallel))
                steps += last_epoch
                self._n_updates += 1
                if self._is_far(last_epoch[-1].approx_kl):
                    break
        self._log(steps, last_epoch)
        if self.imitating is not None:
            n = self.imitating.n_of(self.batch_size) * len(steps)
            self._record_imitation(self._imitated, n)

    def _epoch(self, parallel: DataParallel) -> Iterator[Losses]:
        """Take a gradient step on each minibatch until the policy has moved too far."""
        for indices in self.rollout_buffer.minibatches(self.batch_size):
            losses = self._backward(parallel, indices)
            yield losses
            if self._is_far(losses.approx_kl):
                return
            self._imitate(parallel)
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()

    def _imitate(self, parallel: DataParallel) -> None:
        """Add the gradient of the cross-entropy to a player's actions, while it has a weight."""
        imitating = self.imitating
        if imitating is None or not (weight := imitating.weight_at(self.num_timesteps)):
            return
        shown = imitating.draw(self.batch_size, self.device)
        n = len(shown.actions)

        def loss_of(part: slice) -> tuple[torch.Tensor, tuple[float, int]]:
            seen = rows_of(shown.observations, part)  # type: ignore[arg-type]  # tensors
            found = self.imitation(seen, shown.actions[part], margin=0.0)  # type: ignore[arg-type]
            return weight / n * found.loss, (found.loss.item(), int(found.right))

        self._imitated += parallel.gradient(
            loss_of, n_samples=n, micro_batch_size=self.micro_batch_size or n, adds=True
        )

    def imitation(
        self,
        observations: Tensors,
        actions: torch.Tensor,
        *,
        margin: float,  # noqa: ARG002
    ) -> Imitation:
        """As `LeanAlgorithm.imitation`, with the cross-entropy."""
        policy = cast("LeanCnnPolicy", self.policy)
        values, log_probs = policy.values_and_log_probs(observations)
        loss = functional.nll_loss(log_probs, actions.flatten(), reduction="sum")
        right = (log_probs.argmax(dim=1, keepdim=True) == actions).sum()
        return Imitation(loss, right, values.flatten())

    def _is_far(self, approx_kl: float) -> bool:
        return self.target_kl is not None and approx_kl > 1.5 * self.target_kl

    def _backward(self, parallel: DataParallel, indices: Indices) -> Losses:
        """Leave the gradient of the minibatch's loss in the parameters."""
        advantages = self._advantages_of(indices)

        def loss_of(part: slice) -> tuple[torch.Tensor, Losses]:
            samples = self.rollout_buffer.samples(indices[part])
            samples = samples._replace(advantages=advantages[part].to(self.device))
            outputs = self.policy.evaluate_actions(
                samples.observations, samples.actions.long().flatten()
            )
            return self._share_of_loss(samples, outputs, len(indices))

        losses = parallel.gradient(
            loss_of,
            n_samples=len(indices),
            micro_batch_size=self.micro_batch_size or len(indices),
        )
        return reduce(Losses.plus, losses)

    def _advantages_of(self, timesteps: Indices) -> torch.Tensor:
        """Return the advantages of a minibatch, float32 [batch], normalised if the config says."""
        advantages = torch.from_numpy(self.rollout_buffer.advantages[timesteps].flatten())
        if self.normalize_advantage and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        return advantages

    def _share_of_loss(
        self, part: RolloutBufferSamples, outputs: Outputs, batch_size: int
    ) -> tuple[torch.Tensor, Losses]:
        """Return a part's share of the minibatch's loss and of the log, by PPO.train's formulas.

        Args:
            outputs: values, log probabilities and entropies that the policy has for the part.
        """
        clip_range, clip_range_vf = self._clip_ranges()
        values, log_prob, entropy = outputs
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
        return share * loss, Losses(*(share * mean.item() for mean in means))

    def _clip_ranges(self) -> tuple[float, float | None]:
        """Return the present clip ranges of the probability ratio and of the value function."""
        remaining = self._current_progress_remaining
        of_values = None if self.clip_range_vf is None else self.clip_range_vf(remaining)  # type: ignore[operator]  # a schedule since setup
        return self.clip_range(remaining), of_values  # type: ignore[operator]

    def _log(self, steps: list[Losses], last_epoch: list[Losses]) -> None:
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


P = TypeVar("P", bound=LeanPPO)


def make_ppo(config: PPOConfig, context: BuildContext) -> LeanPPO:
    """Build PPO from a config whose `micro_batch_size: auto` was resolved by `make_algorithm`.

    An `auto` that is still there means the whole minibatch.
    """
    return build_ppo(LeanPPO, LeanCnnPolicy, config, context)


def build_ppo(
    kind: type[P],
    policy: type[ActorCriticPolicy],
    config: PPOConfig,
    context: BuildContext,
    *,
    buffer: type[PackedRolloutBuffer] = PackedRolloutBuffer,
    buffer_arguments: Mapping[str, Any] = MappingProxyType({}),
    policy_arguments: Mapping[str, Any] = MappingProxyType({}),
) -> P:
    """As `make_ppo`, of this class, with what its buffer and its policy need besides."""
    schedule = context.schedule
    placement = context.placement
    model = kind(
        policy,
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
        rollout_buffer_class=buffer,
        rollout_buffer_kwargs=context.buffer_kwargs | dict(buffer_arguments),
        policy_kwargs={
            "network": config.network,
            "precision": placement.precision,
            **policy_arguments,
        },
        seed=context.seed,
        device=placement.device,
    )
    order_channels_last(model)
    return model
