"""SB3's RolloutBuffer, with each frame packed and stored once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples, RolloutBufferSamples

from game_rl.buffers.layout import rollout_buffer_layout
from game_rl.buffers.unpacking import unpack_observations
from game_rl.envs.observation import Observation, ObservationFormat

Indices = NDArray[np.int64]


class PackedRolloutBuffer(RolloutBuffer):
    """A drop-in RolloutBuffer for stacks of frames that returns them bit for bit.

    `add` takes stacks, uint8 [n_envs, stack * C, H, W] as VecFrameStack makes them (the
    newest frame last, zeros before an episode's first frame), and keeps the newest frame of each.
    The stacks of a sample are put together from these frames and unpacked on the device. There is
    no `observations` array, and `get` makes no copy of the whole rollout.

    With a format that has parts, observations are dicts, and the buffer is a DictRolloutBuffer to
    all who use it.

    Args:
        observation_format: of the observations that are added.
    """

    _SAMPLED = ("actions", "values", "log_probs", "advantages", "returns")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        gae_lambda: float = 1,
        gamma: float = 0.99,
        n_envs: int = 1,
        *,
        observation_format: ObservationFormat,
    ) -> None:
        observation_format.check_space(observation_space)
        self.observation_format = observation_format
        self._layout = rollout_buffer_layout(observation_format, n_steps=buffer_size, n_envs=n_envs)
        self.frames = np.zeros(self._layout[0].shape, self._layout[0].dtype)
        super().__init__(
            buffer_size, observation_space, action_space, device, gae_lambda, gamma, n_envs
        )

    def reset(self) -> None:
        """Discard the rollout; the memory of its frames is reused."""
        for array in self._layout[1:]:
            setattr(self, array.name, np.zeros(array.shape, array.dtype))
        self.generator_ready = False
        self.pos = 0
        self.full = False

    def add(
        self,
        obs: Observation,
        action: NDArray[Any],
        reward: NDArray[Any],
        episode_start: NDArray[Any],
        value: torch.Tensor,
        log_prob: torch.Tensor,
        *,
        frames: NDArray[np.uint8] | None = None,
    ) -> None:
        """Store one vec step, as `RolloutBuffer.add` does.

        Args:
            frames: the newest frames of `obs`, packed, uint8 [n_envs, row_bytes]; if None,
                they are packed here.

        Raises:
            ValueError: a frame has a value that the packing cannot hold.
        """
        form = self.observation_format
        row = form.stack - 1 + self.pos
        self.frames[row] = form.pack(form.newest(obs)) if frames is None else frames
        if self.pos == 0:
            self.frames[:row] = form.pack_stacks(obs)[:, :-1].swapaxes(0, 1)
        self.actions[self.pos] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[self.pos] = reward
        self.episode_starts[self.pos] = episode_start
        self.values[self.pos] = value.cpu().numpy().flatten()
        self.log_probs[self.pos] = log_prob.cpu().numpy().reshape(self.n_envs)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def get(self, batch_size: int | None = None) -> Iterator[RolloutBufferSamples]:  # type: ignore[override]  # SB3 says Generator
        """Yield minibatches of the whole rollout in random order, bit for bit RolloutBuffer's."""
        return map(self.samples, self.minibatches(batch_size))

    def minibatches(self, batch_size: int | None = None) -> Iterator[Indices]:
        """Yield the indices of `get`'s minibatches: timestep t of env e is e * buffer_size + t."""
        indices = np.random.permutation(self.buffer_size * self.n_envs)  # noqa: NPY002 - as SB3 draws
        self.number_by_env()
        step = batch_size or len(indices)
        return (indices[start : start + step] for start in range(0, len(indices), step))

    def number_by_env(self) -> None:
        """Lay the rollout out for `samples`, once it is full; the second call does nothing."""
        assert self.full
        if not self.generator_ready:
            # small arrays as SB3 has them, from [n_steps, n_envs] to [n_envs * n_steps, 1]
            self._ages = _ages(self.episode_starts, self.observation_format.stack - 1)
            for name in self._SAMPLED:
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self.generator_ready = True

    def samples(self, indices: Indices) -> RolloutBufferSamples:
        """Return these timesteps, numbered as in `minibatches`, on the device.

        Frames before an episode's first are zeros.
        """
        envs, steps = np.divmod(indices, self.buffer_size)
        form = self.observation_format
        back = np.arange(form.stack - 1, -1, -1)  # age of each stack frame, oldest first
        rows = (form.stack - 1 + steps[:, None] - back) * self.n_envs + envs[:, None]
        observations = unpack_observations(
            torch.from_numpy(self.frames).view(-1, form.row_bytes),
            rows,
            back > self._ages[steps, envs][:, None],
            observation_format=form,
            device=self.device,
        )
        scalars = (self.values, self.log_probs, self.advantages, self.returns)
        kind: Any = DictRolloutBufferSamples if form.is_dict else RolloutBufferSamples
        samples: RolloutBufferSamples = kind(
            observations,
            self.to_torch(self.actions[indices].astype(np.float32)),
            *(self.to_torch(array[indices].flatten()) for array in scalars),
        )
        return samples


def _ages(episode_starts: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """Return how many frames back each stack reaches, int64 [n_steps, n_envs], at most `most`.

    Frames from before the rollout always count as in reach: those of an earlier episode are stored
    as zeros, because the first stack had zeros there.
    """
    ages = np.empty(episode_starts.shape, np.int64)
    age = np.full(episode_starts.shape[1], most)
    for step, starts in enumerate(episode_starts):
        age = np.where(starts, 0, np.minimum(age + 1, most))
        ages[step] = age
    return ages
