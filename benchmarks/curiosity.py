"""Random network distillation for PPO, as a callback: a reward for what is new.

Burda et al. 2018, arXiv:1810.12894: a network learns to predict what a random network makes of an
observation, and its error is the reward. `benchmarks.far_rewards` says what it is worth on beacon.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn
from torch.nn import functional

from game_rl.buffers.rollout_buffer import PackedRolloutBuffer

_N_CODES = 64
_N_CATEGORIES = 24  # there are so many rooms, and fewer of everything else
_BATCH_SIZE = 512


def _mlp(n_inputs: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_inputs, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, n_outputs),
    )


class Moments:
    """Mean and variance of all rows so far, weighted alike."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: torch.Tensor | float = 0.0
        self.var: torch.Tensor | float = 1.0

    def update(self, rows: torch.Tensor) -> None:
        mean = rows.mean(0)
        var = rows.var(0, unbiased=False)
        n = self.n + len(rows)
        share = len(rows) / n
        step = mean - self.mean
        self.var = (1 - share) * self.var + share * var + share * (1 - share) * step**2
        self.mean = self.mean + share * step
        self.n = n


class RandomNetworkDistillation(BaseCallback):
    """Adds to a rollout's advantages those of a reward for what is new.

    As in the paper: a value network of its own for that reward, whose returns go on over the ends
    of episodes; rewards divided by the running deviation of their discounted sum; observations
    normalised and clipped to 5 deviations; predictions are learned on a quarter of the timesteps.

    Args:
        parts: the values of each part of the observation in which something may be new.
        weight: of these advantages to those of the game's rewards.
        gamma: discount of the reward for what is new.
    """

    def __init__(self, parts: dict[str, slice], *, weight: float, gamma: float = 0.99) -> None:
        super().__init__()
        self._parts = parts
        self._weight = weight
        self._gamma = gamma

    def _on_training_start(self) -> None:
        torch.manual_seed(self.model.seed or 0)
        self._seen = Moments()
        self._sums = Moments()
        self._sum: NDArray[np.float32] | None = None
        self._networks: tuple[nn.Sequential, nn.Sequential, nn.Sequential] | None = None

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]  # PPO has one
        assert isinstance(buffer, PackedRolloutBuffer)
        list(buffer.minibatches())  # the arrays are flattened: timestep t of env e, e * n_steps + t
        with torch.no_grad():
            before = self._rows(buffer.samples(np.arange(buffer.n_envs * buffer.buffer_size)))
            rows = before.reshape(buffer.n_envs, buffer.buffer_size, -1)
            # the next observation of each timestep; the last is its own, which is as new
            after = torch.cat((rows[:, 1:], rows[:, -1:]), dim=1).reshape(len(before), -1)
            self._seen.update(after)
        target, predictor, critic = self._made(before.shape[1])
        with torch.no_grad():
            errors = (predictor(self._scaled(after)) - target(self._scaled(after))).square().mean(1)
            values = critic(self._scaled(before)).reshape(buffer.n_envs, -1).numpy()
        rewards = self._normalised(errors.reshape(buffer.n_envs, -1).numpy())
        advantages = self.advantages(rewards, values, buffer.gae_lambda)
        own = buffer.advantages.reshape(buffer.n_envs, -1)
        buffer.advantages[:] = (own + self._weight * advantages).reshape(buffer.advantages.shape)
        self.logger.record("rnd/error", float(errors.mean()))
        self.logger.record("rnd/advantages", float(np.abs(advantages).mean() / np.abs(own).mean()))
        self._learn(before, after, torch.from_numpy((advantages + values).reshape(-1)))

    def _made(self, n_inputs: int) -> tuple[nn.Sequential, nn.Sequential, nn.Sequential]:
        if self._networks is None:
            self._networks = (_mlp(n_inputs, _N_CODES), _mlp(n_inputs, _N_CODES), _mlp(n_inputs, 1))
            learned = [*self._networks[1].parameters(), *self._networks[2].parameters()]
            self._optimiser = torch.optim.Adam(learned, lr=1e-4)
        return self._networks

    def _rows(self, samples: object) -> torch.Tensor:
        """Return the chosen parts side by side; float32 [timesteps, values]."""
        observations = samples.observations  # type: ignore[attr-defined]
        return torch.cat(
            [_vector(observations[name])[:, s] for name, s in self._parts.items()], dim=1
        )

    def _scaled(self, rows: torch.Tensor) -> torch.Tensor:
        return ((rows - self._seen.mean) / (self._seen.var + 1e-4).sqrt()).clamp(-5, 5)

    def _normalised(self, errors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Divide by the running deviation of the discounted sums; float32 [n_envs, n_steps]."""
        sums = np.empty_like(errors)
        running = np.zeros(len(errors), np.float32) if self._sum is None else self._sum
        for step in range(errors.shape[1]):
            running = self._gamma * running + errors[:, step]
            sums[:, step] = running
        self._sum = running
        self._sums.update(torch.from_numpy(sums.reshape(-1)))
        return errors / np.sqrt(float(self._sums.var) + 1e-8)

    def advantages(
        self, rewards: NDArray[np.float32], values: NDArray[np.float32], gae_lambda: float
    ) -> NDArray[np.float32]:
        """Return GAE's advantages without ends of episodes; float32 [n_envs, n_steps]."""
        advantages = np.zeros_like(rewards)
        ahead = np.zeros(len(rewards), np.float32)
        following = values[:, -1]
        for step in reversed(range(rewards.shape[1])):
            delta = rewards[:, step] + self._gamma * following - values[:, step]
            ahead = delta + self._gamma * gae_lambda * ahead
            advantages[:, step] = ahead
            following = values[:, step]
        return advantages

    def _learn(self, before: torch.Tensor, after: torch.Tensor, returns: torch.Tensor) -> None:
        target, predictor, critic = self._made(before.shape[1])
        for batch in torch.randperm(len(before)).split(_BATCH_SIZE):
            quarter = batch[: len(batch) // 4]
            seen = self._scaled(after[quarter])
            loss = functional.mse_loss(predictor(seen), target(seen).detach())
            loss = loss + functional.mse_loss(
                critic(self._scaled(before[batch])).flatten(), returns[batch]
            )
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()


def _vector(part: torch.Tensor) -> torch.Tensor:
    """Return a part as it is, or a category as one of N; float32 [timesteps, values]."""
    if part.dtype.is_floating_point:
        return part
    return functional.one_hot(part.flatten().long(), _N_CATEGORIES).float()
