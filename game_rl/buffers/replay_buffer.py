"""SB3's ReplayBuffer on a replay store."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from game_rl.buffers.layout import Transitions, how_episodes_ended
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_store import ReplayStore
from game_rl.envs.observation import Observation, ObservationFormat
from game_rl.returns import LearnedRewards

REPLAY_STORES: Mapping[str, Callable[..., ReplayStore]] = {"pond": Pond}
"""Every replay store by its name in the config."""


class PackedReplayBuffer(ReplayBuffer):
    """A ReplayBuffer for stacks of frames whose samples equal SB3's bit for bit.

    A sample is what SB3's ReplayBuffer holds for the same timesteps, or its NStepReplayBuffer if
    `n_step` is above 1, with handle_timeout_termination. There are no `observations` arrays, an
    episode's last frame takes the place of one timestep, and samples are drawn by the buffer's own
    Generator.

    With a format that has parts, observations are dicts as in SB3's DictReplayBuffer, which has
    returns of one timestep only.

    Args:
        observation_format: of the observations that are added.
        store: name of the store that keeps the timesteps.
        n_step: timesteps in a return.
        gamma: discount factor of the returns.
        frames_device: device that keeps the frames, `cpu` or a GPU.
        sampling_seed: seed of the generator that draws the samples.

    Attributes:
        learned_rewards: is applied to each timestep's reward in samples; None: they are as stored.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,  # noqa: ARG002 - part of SB3's interface
        *,
        observation_format: ObservationFormat,
        store: str = "pond",
        n_step: int = 1,
        gamma: float = 0.99,
        frames_device: str = "cpu",
        sampling_seed: int = 0,
    ) -> None:
        observation_format.check_space(observation_space)
        assert isinstance(action_space, spaces.Discrete)
        # Not ReplayBuffer.__init__, which would allocate its own arrays.
        BaseBuffer.__init__(
            self, buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        self.n_step = n_step
        self.gamma = gamma
        self.learned_rewards: LearnedRewards | None = None
        self.observation_format = observation_format
        self.store = REPLAY_STORES[store](
            capacity=buffer_size,
            n_envs=n_envs,
            n_actions=int(action_space.n),
            observation_format=observation_format,
            device=frames_device,
            rng=np.random.default_rng(sampling_seed),
        )

    def add(
        self,
        obs: Observation,
        next_obs: Observation,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one vec step, as `ReplayBuffer.add` does.

        Raises:
            ValueError: a frame has a value that the packing cannot hold.
        """
        terminated, truncated = how_episodes_ended(np.asarray(done, np.bool_), infos)
        form = self.observation_format
        frames, next_frames = (form.pack(form.newest(seen)) for seen in (obs, next_obs))
        actions = action.reshape(self.n_envs)
        self.store.append(
            Transitions(obs, frames, actions, reward, next_frames, terminated, truncated)
        )

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Draw timesteps uniformly, onto the device of the network."""
        assert env is None  # observations are never normalised
        batch = self.store.sample(
            batch_size,
            n_step=self.n_step,
            gamma=self.gamma,
            device=self.device,
            learned=self.learned_rewards,
        )
        return replay_samples(
            observations=batch.observations,
            actions=batch.actions,
            next_observations=batch.next_observations,
            dones=batch.terminated,
            rewards=batch.rewards,
            discounts=batch.discounts if self.n_step > 1 else None,
        )

    def size(self) -> int:
        """Return how many timesteps of all envs together can be drawn."""
        return len(self.store)

    def reset(self) -> None:
        """Remove all timesteps."""
        self.store.clear()


def replay_samples(**fields: Any) -> ReplayBufferSamples:  # noqa: ANN401
    """Return SB3's samples with these fields; they are DictReplayBufferSamples with parts."""
    is_dict = isinstance(fields["observations"], dict)
    kind: Any = DictReplayBufferSamples if is_dict else ReplayBufferSamples
    samples: ReplayBufferSamples = kind(**fields)
    return samples


def packed_replay(model: BaseAlgorithm) -> PackedReplayBuffer | None:
    """Return the model's replay; None if it has none, or one that is not packed."""
    replay = getattr(model, "replay_buffer", None)
    return replay if isinstance(replay, PackedReplayBuffer) else None
