"""PQN: Q-learning on many envs at once, without replay and without a target network."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.data_parallel import DataParallel, Threads, data_parallel
from game_rl.algorithms.epsilon_greedy import EpsilonGreedy
from game_rl.algorithms.observation_batches import observation_batch, observation_tensors
from game_rl.algorithms.policies import PQNPolicy
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
from game_rl.returns import q_lambda_returns
from game_rl.schedules import Schedule


class PQN(OnPolicyAlgorithm):
    """Parallelised Q-network (Gallici et al. 2024, Simplifying Deep Temporal Difference Learning).

    Plays `n_steps` vec steps epsilon-greedily, computes Q(lambda) targets from the network's values
    during play, and learns them in minibatches. Has SB3's on-policy interface: `learn`, callbacks
    and the rollout buffer. The buffer's `values` are max_a Q, its `log_probs` and `advantages` stay
    zero.

    Attributes:
        q_lambda: reach of the targets, from 0 (the value of the next state) to 1 (the return up to
            the episode's end).
        exploration: replaces actions by random ones; epsilon is constant within a rollout.
        feeds: get every timestep.
        reward_scaling: makes the rewards to learn from; None if they are those of the game.
    """

    policy: PQNPolicy  # type: ignore[assignment]  # no actor and no critic
    rollout_buffer: PackedRolloutBuffer

    def __init__(  # the arguments are as many as SB3's, and have its names
        self,
        vec_env: VecEnv,
        *,
        learning_rate: float | Schedule,
        n_steps: int,
        batch_size: int,
        n_epochs: int,
        gamma: float,
        q_lambda: float,
        max_grad_norm: float,
        exploration: EpsilonGreedy,
        rollout_buffer_kwargs: dict[str, Any],
        policy_kwargs: dict[str, Any],
        stats_window_size: int,
        seed: int,
        device: str,
        reward_scaling: RewardScaling | None = None,
    ) -> None:
        super().__init__(
            PQNPolicy,  # type: ignore[arg-type]  # no actor and no critic
            vec_env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            gamma=gamma,
            gae_lambda=1.0,  # unused: PQN has no advantages
            ent_coef=0.0,
            vf_coef=0.0,
            max_grad_norm=max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            rollout_buffer_class=PackedRolloutBuffer,
            rollout_buffer_kwargs=rollout_buffer_kwargs,
            stats_window_size=stats_window_size,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
        )
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.q_lambda = q_lambda
        self.exploration = exploration
        self.reward_scaling = reward_scaling
        self.feeds: Sequence[Feed] = ()
        self._threads = Threads()

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """As OnPolicyAlgorithm.collect_rollouts; `returns` are Q(lambda) targets."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        last_obs = self._last_obs
        last_dones = self._last_episode_starts
        assert last_obs is not None
        assert last_dones is not None
        ends = _EpisodeEnds(n_rollout_steps, env.num_envs)
        epsilon = self.exploration.epsilon.at(self.num_timesteps)
        assert isinstance(rollout_buffer, PackedRolloutBuffer)
        decide = partial(self._decide, epsilon)
        form = rollout_buffer.observation_format
        steps = vec_steps(env, last_obs, decide, n_rollout_steps, observation_format=form)
        for n_steps, step in enumerate(steps):
            new_obs, rewards, dones, infos = step.outcome
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            ends.note(n_steps, step, self._best)
            rewards = observed_rewards(self.reward_scaling, rewards, dones)
            actions, values, log_probs = step.decision
            rollout_buffer.add(
                last_obs, actions, rewards, last_dones, values, log_probs, frames=step.frames
            )
            feed_vec_step(self.feeds, last_obs, step)
            self._last_obs = last_obs = new_obs
            self._last_episode_starts = last_dones = dones
        self._set_targets(rollout_buffer, ends, self._best(last_obs))
        self.logger.record("rollout/exploration_rate", epsilon)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _decide(self, epsilon: float, observations: Observation) -> Decision:
        values, actions = self._values(observations).max(dim=1)
        chosen = self.exploration.explored(actions.cpu().numpy(), epsilon)
        return Decision(chosen, values, torch.zeros_like(values))

    def _set_targets(
        self, rollout_buffer: RolloutBuffer, ends: "_EpisodeEnds", values_ahead: NDArray[np.float32]
    ) -> None:
        """Fill in the targets; `values_ahead` is max_a Q of the next observations, [n_envs]."""
        next_values = np.concatenate((rollout_buffer.values[1:], values_ahead[None]))
        rollout_buffer.returns[:] = q_lambda_returns(
            rollout_buffer.rewards,
            np.where(ends.ended, ends.last_values, next_values),
            ends.terminated,
            ends.ended,
            gamma=self.gamma,
            lam=self.q_lambda,
        )

    def train(self) -> None:
        """Make `n_epochs` passes over the rollout; does nothing for no epochs."""
        if not self.n_epochs:
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses: list[float] = []
        with data_parallel(self.policy.parameters(), self.device, self._threads) as parallel:
            for _ in range(self.n_epochs):
                minibatches = self.rollout_buffer.minibatches(self.batch_size)
                losses += [self._gradient_step(parallel, indices) for indices in minibatches]
        self._n_updates += self.n_epochs
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/value", float(self.rollout_buffer.values.mean()))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable.

        Weights, optimiser and counters are not in it.
        """
        return {"exploration": self.exploration.state(), **reward_state(self.reward_scaling)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state, or the statistics of rewards alone."""
        if rest := take_reward_state(self.reward_scaling, state):
            self.exploration.load_state(rest["exploration"])

    def _gradient_step(self, parallel: DataParallel, indices: Indices) -> float:
        """Return the loss before the step, half the mean squared error."""

        def loss_of(part: slice) -> tuple[torch.Tensor, float]:
            samples = self.rollout_buffer.samples(indices[part])
            values = self.policy(samples.observations).gather(1, samples.actions.long())
            errors = values.flatten() - samples.returns
            loss = 0.5 * errors.square().sum() / len(indices)
            return loss, loss.item()

        losses = parallel.gradient(loss_of, n_samples=len(indices), micro_batch_size=len(indices))
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return sum(losses)

    def _values(self, observations: Observation) -> torch.Tensor:
        with torch.no_grad():
            values: torch.Tensor = self.policy(observation_tensors(observations, self.device))
        return values

    def _best(self, observations: Observation) -> NDArray[np.float32]:
        return self._values(observations).amax(dim=1).cpu().numpy()


class _EpisodeEnds:
    """The ends of episodes in a rollout, and the values of the truncated ones.

    Attributes:
        ended: bool [n_steps, n_envs]; the episode ended, in whatever way.
        terminated: bool [n_steps, n_envs]; the game was over.
        last_values: float32 [n_steps, n_envs]; max_a Q of a truncated episode's last observation,
            elsewhere 0.
    """

    def __init__(self, n_steps: int, n_envs: int) -> None:
        self.ended, self.terminated = np.zeros((2, n_steps, n_envs), np.bool_)
        self.last_values = np.zeros((n_steps, n_envs), np.float32)

    def note(
        self, row: int, step: VecStep, best: Callable[[Observation], NDArray[np.float32]]
    ) -> None:
        """Note the ends in one vec step; `best` returns max_a Q for a batch of observations."""
        _, _, self.ended[row], infos = step.outcome
        self.terminated[row] = step.terminated
        cut = np.flatnonzero(step.truncated)
        if len(cut):
            last = observation_batch([infos[i]["terminal_observation"] for i in cut])
            self.last_values[row, cut] = best(last)
