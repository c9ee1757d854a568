"""The rollout buffer of an agent with a memory: sequences, each with the state before it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import RolloutBufferSamples

from game_rl.buffers.layout import memory_layout
from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer


class SequenceBuffer(PackedRolloutBuffer):
    """A PackedRolloutBuffer that is learned in sequences: `sequence` timesteps of one env each.

    The state of the memory is stored once a sequence. Where an episode begins it is zero, so it is
    not stored there.

    Args:
        sequence: timesteps of a sequence.
        state_shape: shape of one env's state.

    Attributes:
        states: float32 [sequences of an env, n_envs, *state_shape], the state before each sequence;
            whoever chooses actions writes it.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - PackedRolloutBuffer's
        sequence: int,
        state_shape: tuple[int, ...],
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.sequence = sequence
        layout = memory_layout(
            state_shape, n_steps=self.buffer_size, n_envs=self.n_envs, sequence=sequence
        )
        self.states = np.zeros(layout.shape, np.float32)

    def get(self, batch_size: int | None = None) -> Iterator[RolloutBufferSamples]:  # type: ignore[override]  # SB3 says Generator
        """Yield minibatches of whole sequences, in random order."""
        batches = self.minibatches(batch_size)
        return (self.samples(self.timesteps_of(sequences)) for sequences in batches)

    def minibatches(self, batch_size: int | None = None) -> Iterator[Indices]:
        """Yield the numbers of the sequences of each minibatch, of `batch_size` timesteps each."""
        of_an_env = self.buffer_size // self.sequence
        numbers = np.random.permutation(of_an_env * self.n_envs)  # noqa: NPY002 - as SB3 draws
        self.number_by_env()
        step = len(numbers) if batch_size is None else batch_size // self.sequence
        return (numbers[start : start + step] for start in range(0, len(numbers), step))

    def timesteps_of(self, sequences: Indices) -> Indices:
        """Return the timesteps of these sequences, one sequence after the other."""
        each = np.arange(self.sequence)
        return (sequences[:, None] * self.sequence + each).ravel()

    def unbroken(self, sequences: Indices) -> tuple[NDArray[np.int64], torch.Tensor]:
        """Cut sequences where episodes begin.

        Returns:
            the number of timesteps of each piece, int64 [pieces], in the order of `timesteps_of`;
            and the state before each, float32 [pieces, *state_shape] on the device.
        """
        envs, numbers = np.divmod(sequences, self.buffer_size // self.sequence)
        steps = numbers[:, None] * self.sequence + np.arange(self.sequence)
        begins = self.episode_starts[steps, envs[:, None]] != 0
        begins[:, 0] = True  # every sequence is a piece, with the stored state
        starts = np.flatnonzero(begins)
        lengths = np.diff(starts, append=begins.size)
        which, within = np.divmod(starts, self.sequence)
        states = np.zeros((len(starts), *self.states.shape[2:]), np.float32)
        firsts = within == 0
        states[firsts] = self.states[numbers[which[firsts]], envs[which[firsts]]]
        return lengths, self.to_torch(states)
