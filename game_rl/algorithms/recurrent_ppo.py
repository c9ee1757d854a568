"""PPO with a memory, learned in sequences as sb3-contrib's RecurrentPPO learns."""

from collections.abc import Mapping
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import BuildContext, LeanOnPolicy
from game_rl.algorithms.data_parallel import DataParallel
from game_rl.algorithms.ppo import LeanPPO, Losses, build_ppo
from game_rl.algorithms.recurrent_policy import RecurrentPolicy
from game_rl.algorithms.reward_scaling import observed_rewards
from game_rl.algorithms.rollout import Decision, VecStep
from game_rl.buffers.rollout_buffer import Indices
from game_rl.buffers.sequence_buffer import SequenceBuffer
from game_rl.buffers.unpacking import observation_tensors
from game_rl.config.algorithms import PPOConfig
from game_rl.envs.observation import Observation, observation_batch

_KEPT = 3  # memories of each env: before the vec step, after it, and after the next one


class LeanRecurrentPPO(LeanPPO):
    """LeanPPO whose policy has a memory, of which each env has a state.

    Its loss is that of sb3-contrib's RecurrentPPO. A minibatch has whole sequences, and so has each
    part of it. The gradient goes back to the beginning of its sequence.
    """

    policy: RecurrentPolicy
    rollout_buffer: SequenceBuffer

    def _setup_model(self) -> None:
        super()._setup_model()
        shape = (_KEPT, self.n_envs, *self.policy.memory_shape)
        self._memories = torch.zeros(shape, device=self.device)
        self._n_decided = np.zeros(self.n_envs, np.int64)  # vec steps of the rollout, of each env

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        return LeanOnPolicy.collect_rollouts(self, env, callback, rollout_buffer, n_rollout_steps)

    @property
    def memory(self) -> torch.Tensor:
        """The state of each env, float32 [n_envs, *memory_shape]; only between two rollouts."""
        return self._memories[self._n_decided[0] % _KEPT]

    def env_arrays(self) -> Mapping[str, NDArray[np.float32]]:
        return {"memory": self.memory.cpu().numpy()}

    def load_env_arrays(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        self.memory[:] = torch.from_numpy(arrays["memory"]).to(self.device)

    def _begin_rollout(self, n_steps: int) -> None:  # noqa: ARG002
        self._memories[0] = self.memory.clone()
        self._n_decided[:] = 0

    def _before(self, step: int, begins: NDArray[np.bool_], rows: slice) -> torch.Tensor:
        """Return the memory of these envs before a vec step; zero where an episode begins."""
        memory = self._memories[step % _KEPT, rows]
        if not begins.any():
            return memory
        kept = torch.from_numpy(~begins).to(self.device)
        return memory * kept.view(-1, *(1,) * (memory.ndim - 1))

    def _decide(
        self, observations: Observation, rows: slice, begins: NDArray[np.bool_]
    ) -> Decision:
        step = int(self._n_decided[rows.start])
        memory = self._before(step, begins, rows)
        buffer = self.rollout_buffer
        if step % buffer.sequence == 0:
            buffer.states[step // buffer.sequence, rows] = memory.cpu().numpy()
        with torch.no_grad():
            tensors = observation_tensors(observations, self.device)
            actions, values, log_probs, after = self.policy(tensors, memory)
        self._n_decided[rows] = step + 1
        self._memories[(step + 1) % _KEPT, rows] = after
        return Decision(actions.cpu().numpy(), values, log_probs)

    def _values_with(self, observations: Observation, memory: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.policy.values_after(observation_tensors(observations, self.device), memory)

    def _learned_rewards(self, row: int, step: VecStep) -> NDArray[np.float32]:
        _, rewards, dones, infos = step.outcome
        rewards = observed_rewards(self.reward_scaling, rewards, dones)
        cut = np.flatnonzero(step.truncated)
        if len(cut):
            last = observation_batch([infos[number]["terminal_observation"] for number in cut])
            memory = self._memories[(row + 1) % _KEPT][torch.from_numpy(cut)]
            values = self._values_with(last, memory).flatten().cpu().numpy()
            rewards[cut] += self.gamma * values
        return rewards

    def _end_rollout(self, last_obs: Observation, last_dones: NDArray[np.bool_]) -> None:
        memory = self._before(int(self._n_decided[0]), last_dones, slice(0, self.n_envs))
        values = self._values_with(last_obs, memory)
        self.rollout_buffer.compute_returns_and_advantage(values, last_dones)

    def shown_values(self) -> NDArray[np.float32]:
        assert self._last_obs is not None
        assert self._last_episode_starts is not None
        step = self.rollout_buffer.pos
        memory = self._before(step, self._last_episode_starts, slice(0, self.n_envs))
        on_gpu = [self.device] if self.device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(on_gpu):  # as `policy_values`
            tensors = observation_tensors(self._last_obs, self.device)
            values, log_probs, _ = self.policy.outputs(tensors, memory)
        rows: NDArray[np.float32] = torch.cat((values, log_probs.exp()), dim=1).cpu().numpy()
        return rows

    def _backward(self, parallel: DataParallel, indices: Indices) -> Losses:
        """As `LeanPPO._backward`, of whole sequences."""
        buffer = self.rollout_buffer
        sequence = buffer.sequence
        advantages = self._advantages_of(buffer.timesteps_of(indices)).to(self.device)
        batch = sequence * len(indices)

        def loss_of(part: slice) -> tuple[torch.Tensor, Losses]:
            timesteps = slice(part.start * sequence, part.stop * sequence)
            samples = buffer.samples(buffer.timesteps_of(indices[part]))
            samples = samples._replace(advantages=advantages[timesteps])
            lengths, memory = buffer.unbroken(indices[part])
            outputs = self.policy.evaluate_pieces(
                samples.observations, samples.actions.long().flatten(), lengths, memory
            )
            return self._share_of_loss(samples, outputs, batch)

        losses = parallel.gradient(
            loss_of,
            n_samples=len(indices),
            micro_batch_size=max(1, (self.micro_batch_size or batch) // sequence),
            sample_timesteps=sequence,
        )
        return reduce(Losses.plus, losses)


def make_recurrent_ppo(config: PPOConfig, context: BuildContext) -> LeanRecurrentPPO:
    """As `make_ppo`, for a config with a memory."""
    assert config.memory is not None
    memory = config.memory
    return build_ppo(
        LeanRecurrentPPO,
        RecurrentPolicy,
        config,
        context,
        buffer=SequenceBuffer,
        buffer_arguments={"sequence": memory.sequence, "state_shape": memory.state_shape},
        policy_arguments={"memory": memory},
    )
