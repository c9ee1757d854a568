"""Sizes of the network, of a gradient step, and of the parts of a minibatch.

It imports no torch, because the preflight uses it as well as the training.
"""

from dataclasses import dataclass
from itertools import pairwise

from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, LayerNorm, PPOConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.system.placement import Bf16Way
from game_rl.system.units import MIB

_FLOAT, _BF16 = 4, 2
_FEATURES = 512  # NatureCNN's output (SB3, torch_layers.py)


def _conv(size: int, kernel: int, stride: int) -> int:
    return (size - kernel) // stride + 1


@dataclass(frozen=True, kw_only=True)
class NetworkSize:
    """Size of a network of three convolutions, a linear layer and its heads.

    Attributes:
        channels: of the stacked observation.
        has_value_head: whether there is a value head as well as the action head, as in PPO.
        has_target: whether there is also a target network, as in DQN.
        layer_norm: normalisation before each ReLU, in PQN and DQN.
    """

    channels: int
    height: int
    width: int
    n_actions: int
    has_value_head: bool = True
    has_target: bool = False
    layer_norm: LayerNorm = "none"

    @classmethod
    def of(
        cls, observation_format: ObservationFormat, algorithm: AlgorithmConfig, *, n_actions: int
    ) -> "NetworkSize":
        """Return the size of the network that `algorithm` trains."""
        channels, height, width = observation_format.shape
        return cls(
            channels=channels,
            height=height,
            width=width,
            n_actions=n_actions,
            has_value_head=isinstance(algorithm, PPOConfig),
            has_target=isinstance(algorithm, DQNConfig),
            layer_norm="none" if isinstance(algorithm, PPOConfig) else algorithm.layer_norm,
        )

    @property
    def observation(self) -> int:
        """Numbers in an observation, which is also its bytes as uint8."""
        return self.channels * self.height * self.width

    @property
    def activations(self) -> tuple[int, int, int]:
        """Numbers in the output of each convolution for one observation."""
        h1, w1 = _conv(self.height, 8, 4), _conv(self.width, 8, 4)
        h2, w2 = _conv(h1, 4, 2), _conv(w1, 4, 2)
        return 32 * h1 * w1, 64 * h2 * w2, 64 * _conv(h2, 3, 1) * _conv(w2, 3, 1)

    @property
    def parameters(self) -> int:
        convolutions = (64 * self.channels * 32 + 32) + (16 * 32 * 64 + 64) + (9 * 64 * 64 + 64)
        heads = (_FEATURES + 1) * (self.n_actions + self.has_value_head)
        return convolutions + self.largest_parameter + _FEATURES + heads + self._norms

    @property
    def _norms(self) -> int:
        """Numbers in the normalisation layers: their weights, and as many biases."""
        of_convolutions = {"none": 0, "channels": 32 + 64 + 64, "picture": sum(self.activations)}[
            self.layer_norm
        ]
        return 2 * (of_convolutions + _FEATURES) if of_convolutions else 0

    @property
    def largest_parameter(self) -> int:
        """Numbers in the linear layer's weight."""
        return self.activations[2] * _FEATURES

    @property
    def weights_bytes(self) -> int:
        return _FLOAT * self.parameters

    @property
    def policy_parameters(self) -> int:
        """Parameters of the network, and of its target network if it has one."""
        return (1 + self.has_target) * self.parameters

    @property
    def policy_bytes(self) -> int:
        return _FLOAT * self.policy_parameters

    @property
    def training_bytes(self) -> int:
        """Bytes of the policy's weights, the optimiser's two moments and the gradients."""
        return self.policy_bytes + 3 * self.weights_bytes

    def kept_weights_bytes(self, *, bf16: bool) -> int:
        """Bytes of the weight copies that LeanNatureCNN caches in evaluation mode.

        A target network is always in that mode.
        """
        return _BF16 * self.parameters if bf16 else _FLOAT * self.largest_parameter

    def radam_blocks(self) -> list[int]:
        """Return the sizes of the blocks alive together while RAdam moves the largest parameter.

        Torch computes the step out of place: the corrected first moment, that times the learning
        rate, the root of the second moment, its reciprocal, and that times its correction.
        """
        return 5 * [_FLOAT * self.largest_parameter]

    def step_blocks(
        self, batch_size: int, *, bf16: bool, way: Bf16Way = "native"
    ) -> dict[str, list[int]]:
        """Return the sizes of the memory blocks alive together in each part of a gradient step.

        Observations, weights, their gradients and the optimiser's moments are not included. The
        copies of weights and gradients that bfloat16 needs are. The blocks are those that torch's
        profiler shows for LeanNatureCNN:

        - The bytes are moved into the order of blocks, then converted to numbers.
        - A ReLU works in place. In the backward pass it holds its output and both gradients.
        - Flattening copies, because the input is channels_last.
        - One normalisation over the whole picture copies, because it is computed channels first.
        - The features are small in comparison. With normalisation there are two copies of them,
          and in bfloat16 a float32 copy as well.
        - Where bfloat16 is converted, the linear layer's gradient is summed in float32. Where it is
          unfolded, a number of an input stands once for each place of the kernel that covers it.
        """
        number = _BF16 if bf16 else _FLOAT
        x = number * self._whole_blocks * batch_size
        a1, a2, a3 = (number * size * batch_size for size in self.activations)
        always = [_BF16 * self.parameters] if bf16 else []
        n1, n2, n3, n4 = self._norm_blocks(batch_size, number=number)
        first, copies = ([a1], [a2, a2]) if self.layer_norm == "picture" else ([], [])
        numbers = _BF16 + (_FLOAT if way == "converted" else 0)
        gradient = [numbers * self.largest_parameter] if bf16 else []
        as_floats = [2 * size for size in n4[:1]] if bf16 else []
        bytes_in_blocks = [self._whole_blocks * batch_size] * (2 if self.width % 4 else 1)
        below = [*always, x, a1, *n1, a2, *n2]
        u1, u2, u3 = self._unfolded(batch_size) if bf16 and way == "unfolded" else ([], [], [])
        return {
            "to blocks": [*always, *bytes_in_blocks, x],
            "unfolded 1": [*always, x, a1, *first, *u1],
            "backward unfolded 2": [*always, x, a1, *n1, a2, a1, *u2],
            "backward unfolded 3": [*below, a3, a2, *u3],
            "forward": [*below, a3, *n3, a3, *n4, *n4[:1], *as_floats],
            "backward linear": [*below, a3, *n3, a3, a3, *n4[:1], *gradient],
            "backward 2": [*below, a2, a2],
            "backward 1": [*always, x, a1, *n1, a1, a1, *copies],
        }

    def sample_bytes(self, *, bf16: bool) -> int:
        """Return the bytes that one more sample adds to a gradient step's most expensive part."""
        one, two = (self.step_blocks(size, bf16=bf16) for size in (1, 2))
        return max(sum(two[moment]) - sum(one[moment]) for moment in one)

    def _norm_blocks(self, batch_size: int, *, number: int) -> list[list[int]]:
        """Return the blocks that each layer's normalisation keeps: its input, and its statistics.

        The statistics are a mean and a deviation for each normalised group.
        """
        if self.layer_norm == "none":
            return [[], [], [], []]
        sizes = (*self.activations, _FEATURES)
        in_a_group = (32, 64, 64, _FEATURES) if self.layer_norm == "channels" else sizes
        return [
            [number * size * batch_size, 2 * number * (size // group) * batch_size]
            for size, group in zip(sizes, in_a_group, strict=True)
        ]

    def _unfolded(self, batch_size: int) -> tuple[list[int], list[int], list[int]]:
        """Return the block of each convolution's unfolded input, in bfloat16."""
        a1, a2, a3 = (_BF16 * size * batch_size for size in self.activations)
        return [64 * self.channels * a1 // 32], [16 * 32 * a2 // 64], [9 * 64 * a3 // 64]

    @property
    def _whole_blocks(self) -> int:
        """Numbers in the whole 4 x 4 blocks of an observation; the network ignores the rest."""
        return self.channels * (self.height // 4 * 4) * (self.width // 4 * 4)


_CACHES_OF_A_PART = 3
_LEAST_BYTES, _MOST_BYTES = 56 * MIB, 112 * MIB


def micro_batch_size(batch_size: int, *, sample_bytes: int, cpus: int, cache_bytes: int) -> int:
    """Return the samples that all threads together process at a time, 1 to `batch_size`.

    The samples of one thread are a part. A part has three times the bytes of the thread's share of
    the cache, but at least 56 and at most 112 MiB. The minibatch is divided into as few
    micro-batches of equal size as parts of that size allow, and into so few that each thread still
    gets SMALLEST_PART samples.

    The measurements are in `docs/research/performance.md`. Each part multiplies, copies and adds
    weights and gradients of its own, which takes a tenth of the time or more below some 32 MiB of
    samples.
    With two threads on an EPYC, each with 16 MiB of L3, parts of 56 MiB were no slower than the
    whole batch, whose memory blocks return to the system after each use. Larger parts were no
    faster.
    """
    part_bytes = min(max(_CACHES_OF_A_PART * cache_bytes, _LEAST_BYTES), _MOST_BYTES)
    rounds = -(-batch_size // (cpus * max(1, part_bytes // sample_bytes)))
    most_rounds = max(1, batch_size // (cpus * SMALLEST_PART))
    return -(-batch_size // min(rounds, most_rounds))


def timesteps_together(
    algorithm: AlgorithmConfig,
    network: NetworkSize,
    *,
    bf16: bool,
    on_gpu: bool,
    cpus: int,
    cache_bytes: int,
) -> int:
    """Return how many timesteps of a minibatch go through the network together.

    On a GPU `auto` means the whole minibatch: a GPU is faster the more it gets at once, and the
    preflight rejects a batch that does not fit.

    Args:
        algorithm: its `micro_batch_size`, if it has one, may be `auto`.
        network: only its activations matter, not the number of actions.
        bf16: whether the network is computed in bfloat16.
        on_gpu: whether the network is on a GPU.
        cpus: threads that share a minibatch on the CPU.
        cache_bytes: cache of each of these CPUs (`game_rl.system.machine`).
    """
    batch = algorithm.batch_size
    if not isinstance(algorithm, PPOConfig):
        return batch
    micro = algorithm.micro_batch_size
    if micro != "auto":
        return min(batch, micro or batch)
    if on_gpu:
        return batch
    sample_bytes = network.sample_bytes(bf16=bf16)
    return micro_batch_size(batch, sample_bytes=sample_bytes, cpus=cpus, cache_bytes=cache_bytes)


# In samples. Starting the operations of a step takes torch about as long as computing this many.
SMALLEST_PART = 32


def n_minibatch_parts(n_samples: int, n_threads: int) -> int:
    """Number of parts: one for each thread, or fewer if the parts would be too small."""
    return max(1, min(n_threads, n_samples // SMALLEST_PART))


def minibatch_parts(start: int, stop: int, n_threads: int) -> list[slice]:
    """Slices of the samples from `start` to `stop`, of sizes that differ by at most 1."""
    n_samples = stop - start
    n = n_minibatch_parts(n_samples, n_threads)
    bounds = [start + n_samples * part // n for part in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]
