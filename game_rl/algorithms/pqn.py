"""PQN: Q-learning on many envs at once, without replay and without a target network."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.data_parallel import DataParallel, data_parallel
from game_rl.algorithms.exploration import Exploration, make_exploration
from game_rl.algorithms.feeding import feed_vec_step
from game_rl.algorithms.make_schedule import make_schedule
from game_rl.algorithms.networks import find_precision
from game_rl.algorithms.q_networks import PQNPolicy
from game_rl.algorithms.vec_steps import Decision, vec_steps
from game_rl.buffers.feed import Feed
from game_rl.buffers.rollout import Indices, PackedRolloutBuffer
from game_rl.config.algorithms import PQNConfig
from game_rl.envs.packing import FramePacking
from game_rl.returns import q_lambda_returns

Infos = list[dict[str, Any]]


class PQN(OnPolicyAlgorithm):
    """Parallelised Q-network (Gallici et al. 2024, Simplifying Deep Temporal Difference Learning).

    Plays `n_steps` vec steps epsilon-greedily, computes Q(lambda) targets from the values that the
    network had while it played, and goes through them in minibatches. Speaks SB3's on-policy
    dialect: `learn`, callbacks and the rollout buffer, whose `values` are max_a Q; `log_probs` and
    `advantages` stay zeros.

    Attributes:
        exploration: of the actions; epsilon stays the same within a rollout.
        feeds: get every timestep.
    """

    policy: PQNPolicy  # type: ignore[assignment]  # no actor and no critic
    rollout_buffer: PackedRolloutBuffer

    def __init__(
        self,
        vec_env: VecEnv,
        *,
        config: PQNConfig,
        exploration: Exploration,
        packing: FramePacking,
        frame_stack: int,
        seed: int,
        device: str,
        schedule_share: float = 1.0,
    ) -> None:
        self.batch_size, self.n_epochs = config.batch_size, config.n_epochs
        self.exploration = exploration
        self.feeds: Sequence[Feed] = ()
        super().__init__(
            PQNPolicy,  # type: ignore[arg-type]  # no actor and no critic
            vec_env,
            learning_rate=make_schedule(config.learning_rate, schedule_share),
            n_steps=config.n_steps,
            gamma=config.gamma,
            gae_lambda=config.q_lambda,
            ent_coef=0.0,
            vf_coef=0.0,
            max_grad_norm=config.max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            rollout_buffer_class=PackedRolloutBuffer,
            rollout_buffer_kwargs={"packing": packing, "frame_stack": frame_stack},
            stats_window_size=config.stats_window_size,
            policy_kwargs={
                "layer_norm": config.layer_norm,
                "precision": find_precision(config.precision, device),
            },
            seed=seed,
            device=device,
        )

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
        last_obs, last_dones = self._last_obs, self._last_episode_starts
        assert isinstance(last_obs, np.ndarray)
        assert last_dones is not None
        shape = (n_rollout_steps, env.num_envs)
        ends, terminations = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        last_values = np.zeros(shape, np.float32)
        epsilon = self.exploration.epsilon.at(self.num_timesteps)

        def decide(observations: NDArray[Any]) -> Decision:
            values, actions = self._values(observations).max(dim=1)
            chosen = self.exploration.explored(actions.cpu().numpy(), epsilon)
            return Decision(chosen, values, torch.zeros_like(values))

        steps = vec_steps(env, last_obs, decide, n_rollout_steps)
        for step, (decision, outcome) in enumerate(steps):
            new_obs, rewards, dones, infos = outcome
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            ends[step], terminations[step] = dones, dones & ~_truncated(infos)
            cut = np.flatnonzero(ends[step] & ~terminations[step])
            if len(cut):
                last_stacks = np.stack([infos[i]["terminal_observation"] for i in cut])
                last_values[step, cut] = self._best(last_stacks)
            actions, values, log_probs = decision
            rollout_buffer.add(last_obs, actions, rewards, last_dones, values, log_probs)
            feed_vec_step(self.feeds, last_obs, actions, outcome)
            self._last_obs, self._last_episode_starts = last_obs, last_dones = new_obs, dones
        next_values = np.concatenate((rollout_buffer.values[1:], self._best(last_obs)[None]))
        rollout_buffer.returns[:] = q_lambda_returns(
            rollout_buffer.rewards,
            np.where(ends, last_values, next_values),
            terminations,
            ends,
            gamma=self.gamma,
            lam=self.gae_lambda,
        )
        self.logger.record("rollout/exploration_rate", epsilon)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """`n_epochs` passes over the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses: list[float] = []
        with data_parallel(self.policy.parameters(), self.device) as parallel:
            for _ in range(self.n_epochs):
                minibatches = self.rollout_buffer.minibatches(self.batch_size)
                losses += [self._gradient_step(parallel, indices) for indices in minibatches]
        self._n_updates += self.n_epochs
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/value", float(self.rollout_buffer.values.mean()))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def state(self) -> dict[str, Any]:
        """What goes on from here, beside weights, optimiser and counters; JSON can hold it."""
        return {"exploration": self.exploration.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.exploration.load_state(state["exploration"])

    def _gradient_step(self, parallel: DataParallel, indices: Indices) -> float:
        """The loss before it, half the mean squared error."""

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

    def _values(self, observations: NDArray[Any]) -> torch.Tensor:
        with torch.no_grad():
            values: torch.Tensor = self.policy(obs_as_tensor(observations, self.device))
        return values

    def _best(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        return self._values(observations).amax(dim=1).cpu().numpy()


def _truncated(infos: Infos) -> NDArray[np.bool_]:
    return np.array([bool(info.get("TimeLimit.truncated")) for info in infos])


def make_pqn(
    config: PQNConfig,
    vec_env: VecEnv,
    *,
    packing: FramePacking,
    frame_stack: int,
    seed: int,
    device: str,
    schedule_timesteps: int,
    schedule_share: float = 1.0,
) -> PQN:
    """PQN for stacks of `frame_stack` frames that `packing` describes.

    Schedules go over `schedule_timesteps`, which are `schedule_share` of the training.
    """
    model = PQN(
        vec_env,
        config=config,
        exploration=make_exploration(
            config.exploration,
            timesteps=schedule_timesteps,
            n_actions=int(vec_env.action_space.n),  # type: ignore[attr-defined]  # buttons are discrete
            seed=seed,
        ),
        packing=packing,
        frame_stack=frame_stack,
        seed=seed,
        device=device,
        schedule_share=schedule_share,
    )
    # the same numbers in another order in memory: NatureCNN's update is faster so
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    return model
