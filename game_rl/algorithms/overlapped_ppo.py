"""PPO that chooses actions for one half of the envs while the other half plays."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from game_rl.vec_env.halved_vec_env import HalvedVecEnv


class _Decision(NamedTuple):
    """What the policy says to a batch of observations."""

    actions: NDArray[np.int64]
    values: torch.Tensor
    log_probs: torch.Tensor


class OverlappedPPO(PPO):
    """SB3's PPO whose rollouts keep emulators and network busy at once, on a HalvedVecEnv.

    The halves take turns: while the workers of one play, the network answers the other. A rollout
    is what it would be if nothing overlapped: every action is the present policy's answer to the
    newest observation, and no half is ahead when a rollout ends. Only the order in which random
    numbers are drawn differs from SB3's: for each timestep, those of the first half and then those
    of the second. On any other vec env it is SB3's own. For Discrete actions.
    """

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """As PPO.collect_rollouts: the same calls of the callback, the same local variables."""
        if not isinstance(env, HalvedVecEnv):
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        first, second = env.halves
        last_obs, last_dones = self._last_obs, self._last_episode_starts
        assert isinstance(last_obs, np.ndarray)
        assert last_dones is not None
        observations = [last_obs[bounds] for bounds in env.bounds]
        decision = self._decide(observations[0])
        first.step_async(decision.actions)
        for step in range(n_rollout_steps):
            decisions = decision, self._decide(observations[1])  # the first half plays
            outcome = first.step_wait()
            second.step_async(decisions[1].actions)
            has_next = step + 1 < n_rollout_steps
            if has_next:
                decision = self._decide(outcome[0])  # the second half plays
            outcomes = outcome, second.step_wait()
            if has_next:
                first.step_async(decision.actions)
            observations = [outcome[0] for outcome in outcomes]
            new_obs, rewards, dones, infos = env.joined(*outcomes)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            self._bootstrap(rewards, dones, infos)
            actions, values, log_probs = _joined(*decisions)
            rollout_buffer.add(last_obs, actions, rewards, last_dones, values, log_probs)
            self._last_obs, self._last_episode_starts = last_obs, last_dones = new_obs, dones
        rollout_buffer.compute_returns_and_advantage(self._values(last_obs), last_dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _decide(self, observations: NDArray[Any]) -> _Decision:
        with torch.no_grad():
            actions, values, log_probs = self.policy(obs_as_tensor(observations, self.device))
        return _Decision(actions.cpu().numpy(), values, log_probs)

    def _values(self, observations: NDArray[Any]) -> torch.Tensor:
        with torch.no_grad():
            return self.policy.predict_values(obs_as_tensor(observations, self.device))

    def _bootstrap(
        self,
        rewards: NDArray[np.float32],
        dones: NDArray[np.bool_],
        infos: list[dict[str, Any]],
    ) -> None:
        """Where a time limit cut an episode off, what it was still worth counts (SB3 issue 633)."""
        for number in np.flatnonzero(dones):
            if infos[number].get("TimeLimit.truncated"):
                last = infos[number]["terminal_observation"]
                rewards[number] += self.gamma * self._values(last[None]).item()


def _joined(first: _Decision, second: _Decision) -> _Decision:
    return _Decision(
        np.concatenate((first.actions, second.actions)),
        torch.cat((first.values, second.values)),
        torch.cat((first.log_probs, second.log_probs)),
    )
