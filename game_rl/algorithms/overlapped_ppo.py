"""PPO that chooses actions for some envs while others play."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.vec_steps import Decision, vec_steps
from game_rl.vec_env.halved_vec_env import HalvedVecEnv


class OverlappedPPO(PPO):
    """SB3's PPO whose rollouts keep emulators and network busy at once, on a HalvedVecEnv.

    A rollout is what it would be if nothing overlapped (see `vec_steps`): only the order in which
    random numbers are drawn differs from SB3's. On any other vec env it is SB3's own. For Discrete
    actions.
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
        last_obs, last_dones = self._last_obs, self._last_episode_starts
        assert isinstance(last_obs, np.ndarray)
        assert last_dones is not None
        for decision, outcome in vec_steps(env, last_obs, self._decide, n_rollout_steps):
            new_obs, rewards, dones, infos = outcome
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            self._bootstrap(rewards, dones, infos)
            actions, values, log_probs = decision
            rollout_buffer.add(last_obs, actions, rewards, last_dones, values, log_probs)
            self._last_obs, self._last_episode_starts = last_obs, last_dones = new_obs, dones
        rollout_buffer.compute_returns_and_advantage(self._values(last_obs), last_dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _decide(self, observations: NDArray[Any]) -> Decision:
        with torch.no_grad():
            actions, values, log_probs = self.policy(obs_as_tensor(observations, self.device))
        return Decision(actions.cpu().numpy(), values, log_probs)

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
