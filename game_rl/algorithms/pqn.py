"""PQN: Q-learning on many envs at once, without replay and without a target network."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import BuildContext, LeanOnPolicy, order_channels_last
from game_rl.algorithms.data_parallel import DataParallel, Threads, data_parallel
from game_rl.algorithms.demonstrations import Imitation, large_margin
from game_rl.algorithms.policies import PQNPolicy
from game_rl.algorithms.reward_scaling import RewardScaling, observed_rewards, take_reward_state
from game_rl.algorithms.rollout import Decision, EpsilonGreedy, VecStep
from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer
from game_rl.buffers.unpacking import Tensors, observation_tensors
from game_rl.config.algorithms import PQNConfig
from game_rl.envs.observation import Observation, observation_batch, rows_of
from game_rl.returns import q_lambda_returns
from game_rl.schedules import Schedule


class PQN(LeanOnPolicy):
    """Parallelised Q-network (Gallici et al. 2024, Simplifying Deep Temporal Difference Learning).

    Plays `n_steps` vec steps epsilon-greedily, computes Q(lambda) targets from the network's values
    during play, and learns them in minibatches. Has SB3's on-policy interface: `learn`, callbacks
    and the rollout buffer. The buffer's `values` are max_a Q, its `log_probs` and `advantages` stay
    zero.

    Attributes:
        q_lambda: reach of the targets, from 0 (the value of the next state) to 1 (the return up to
            the episode's end).
        exploration: replaces actions by random ones; epsilon is constant within a rollout.
    """

    policy: PQNPolicy  # type: ignore[assignment]  # no actor and no critic

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
        self._threads = Threads()

    def _begin_rollout(self, n_steps: int) -> None:
        self._ends = _EpisodeEnds(n_steps, self.n_envs)
        self._epsilon = self.exploration.epsilon.at(self.num_timesteps)

    def _decide(
        self,
        observations: Observation,
        rows: slice,  # noqa: ARG002
        begins: NDArray[np.bool_],  # noqa: ARG002
    ) -> Decision:
        values, actions = self._values(observations).max(dim=1)
        chosen = self.exploration.explored(actions.cpu().numpy(), self._epsilon)
        return Decision(chosen, values, torch.zeros_like(values))

    def _learned_rewards(self, row: int, step: VecStep) -> NDArray[np.float32]:
        self._ends.note(row, step, self._best)
        _, rewards, dones, _ = step.outcome
        return observed_rewards(self.reward_scaling, rewards, dones)

    def _end_rollout(self, last_obs: Observation, last_dones: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Fill in the targets."""
        ends = self._ends
        rollout_buffer = self.rollout_buffer
        next_values = np.concatenate((rollout_buffer.values[1:], self._best(last_obs)[None]))
        rollout_buffer.returns[:] = q_lambda_returns(
            rollout_buffer.rewards,
            np.where(ends.ended, ends.last_values, next_values),
            ends.terminated,
            ends.ended,
            gamma=self.gamma,
            lam=self.q_lambda,
        )
        self.logger.record("rollout/exploration_rate", self._epsilon)

    def train(self) -> None:
        """Make `n_epochs` passes over the rollout; does nothing for no epochs."""
        if not self.n_epochs:
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses: list[float] = []
        self._imitated: list[tuple[float, int]] = []
        with data_parallel(self.policy.parameters(), self.device, self._threads) as parallel:
            for _ in range(self.n_epochs):
                minibatches = self.rollout_buffer.minibatches(self.batch_size)
                losses += [self._gradient_step(parallel, indices) for indices in minibatches]
        self._n_updates += self.n_epochs
        if self.imitating is not None:
            n = self.imitating.n_of(self.batch_size) * len(losses)
            self._record_imitation(self._imitated, n)
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/value", float(self.rollout_buffer.values.mean()))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def state(self) -> dict[str, Any]:
        return {"exploration": self.exploration.state(), **super().state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        if rest := take_reward_state(self.reward_scaling, state):
            self._load_played(rest)
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
        self._imitate(parallel)
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return sum(losses)

    def _imitate(self, parallel: DataParallel) -> None:
        """Add the gradient of played timesteps: half the squared error, and the large margin.

        Their targets are n-step returns, as traces over another's actions would be of its policy.
        """
        imitating = self.imitating
        if imitating is None:
            return
        shown = imitating.draw(self.batch_size, self.device)
        weight = imitating.weight_at(self.num_timesteps)
        n = len(shown.actions)
        assert shown.discounts is not None
        with torch.no_grad():
            best = self.policy(shown.next_observations).amax(dim=1, keepdim=True)
            targets = shown.rewards + (1 - shown.dones) * shown.discounts * best

        def loss_of(part: slice) -> tuple[torch.Tensor, tuple[float, int]]:
            seen = rows_of(shown.observations, part)  # type: ignore[arg-type]  # tensors
            found = self.imitation(seen, shown.actions[part], margin=imitating.margin)  # type: ignore[arg-type]
            squares = 0.5 * (found.values - targets[part].flatten()).square().sum()
            return (squares + weight * found.loss) / n, (found.loss.item(), int(found.right))

        self._imitated += parallel.gradient(loss_of, n_samples=n, micro_batch_size=n, adds=True)

    def imitation(
        self, observations: Tensors, actions: torch.Tensor, *, margin: float
    ) -> Imitation:
        """As `LeanAlgorithm.imitation`, with the large margin."""
        return large_margin(self.policy.q_net(observations), actions, margin)

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
