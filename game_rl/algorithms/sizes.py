"""Sizes of the network, of a gradient step, and of the parts of a minibatch.

It imports no torch, because the preflight uses it as well as the training.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

from game_rl.algorithms.encoder_sizes import (
    FLOAT_BYTES,
    Blocks,
    CategoriesSize,
    EncoderSize,
    GridSize,
    ImpalaSize,
    NatureSize,
    SmallSize,
    VectorSize,
)
from game_rl.config.algorithms import AlgorithmConfig, LayerNorm
from game_rl.config.network import NATURE, NetworkConfig, ScreenNetwork, hidden_layers
from game_rl.envs.observation import SCREEN, ObservationFormat
from game_rl.games.parts.part_format import PartFormat
from game_rl.system.placement import Bf16Way
from game_rl.system.units import MIB

_SCREEN_SIZES: dict[ScreenNetwork, type[NatureSize | ImpalaSize | SmallSize]] = {
    "nature": NatureSize,
    "impala": ImpalaSize,
    "small": SmallSize,
}


@dataclass(frozen=True)
class MemorySize:
    """Size of the recurrent layers of the policy, which the value function has once more.

    Attributes:
        gates: vectors of `size` that each layer computes for a timestep, 4 of an LSTM, 3 of a GRU.
        inputs: numbers that the first layer gets.
    """

    gates: int
    size: int
    layers: int
    inputs: int

    @property
    def _weights(self) -> list[tuple[int, int]]:
        """Numbers in the weights of each layer for its inputs, and for its own state."""
        inputs = [self.inputs, *[self.size] * (self.layers - 1)]
        return [(self.gates * self.size * n, self.gates * self.size * self.size) for n in inputs]

    @property
    def parameters(self) -> int:
        biases = 2 * self.layers * self.gates * self.size
        return sum(map(sum, self._weights)) + biases

    @property
    def largest_parameter(self) -> int:
        return max(map(max, self._weights))

    def step_blocks(self, batch_size: int) -> list[int]:
        """Return the blocks that the layers of policy and value function keep for `backward`.

        The features are copied once into the order of the layers. Each layer keeps its gates, its
        output and its cell, and the last output is copied back.
        """
        floats = FLOAT_BYTES * batch_size
        each = [floats * self.gates * self.size, 2 * floats * self.size]
        return [floats * self.inputs, *2 * (self.layers * each + [floats * self.size])]


@dataclass(frozen=True, kw_only=True)
class NetworkSize:
    """Size of a network: features of each part, hidden layers, and its heads.

    Attributes:
        encoders: what makes features of each part of an observation, in order.
        has_value_head: whether there is a value head as well as the action head, as in PPO; it has
            hidden layers of its own.
        has_target: whether there is also a target network, as in DQN.
        hidden: units of the hidden layers.
        layer_norm: normalisation before each ReLU, in PQN and DQN.
        memory: recurrent layers after the features, if it has any.
    """

    encoders: tuple[tuple[str, EncoderSize], ...]
    n_actions: int
    has_value_head: bool = True
    has_target: bool = False
    hidden: tuple[int, ...] = ()
    layer_norm: LayerNorm = "none"
    memory: MemorySize | None = None

    @classmethod
    def of(
        cls, observation_format: ObservationFormat, algorithm: AlgorithmConfig, *, n_actions: int
    ) -> "NetworkSize":
        """Return the size of the network that `algorithm` trains.

        A custom features extractor, whose size nobody knows, counts as the default one.
        """
        network = algorithm.network if isinstance(algorithm.network, NetworkConfig) else NATURE
        layer_norm: LayerNorm = algorithm.layer_norm
        encoders = tuple(_encoders(observation_format, network, layer_norm))
        memory = None
        if (recurrent := algorithm.memory) is not None:
            gates = 4 if recurrent.kind == "lstm" else 3
            features = sum(encoder.features for _, encoder in encoders)
            memory = MemorySize(gates, recurrent.size, recurrent.layers, features)
        return cls(
            encoders=encoders,
            n_actions=n_actions,
            has_value_head=not algorithm.has_q_network,
            has_target=algorithm.has_target_network,
            hidden=hidden_layers(algorithm.network, has_parts=observation_format.is_dict),
            layer_norm=layer_norm,
            memory=memory,
        )

    @property
    def features(self) -> int:
        return sum(encoder.features for _, encoder in self.encoders)

    @property
    def _before_hidden(self) -> int:
        """Numbers that the first hidden layer gets."""
        return self.features if self.memory is None else self.memory.size

    @cached_property
    def parameters(self) -> int:
        last = (self._before_hidden, *self.hidden)[-1]
        heads = (last + 1) * (self.n_actions + self.has_value_head)
        layers = sum((before + 1) * units for before, units in self._hidden_shapes)
        if self.layer_norm != "none":
            layers += 2 * sum(self.hidden)
        encoders = sum(encoder.parameters for _, encoder in self.encoders)
        memory = 0 if self.memory is None else 2 * self.memory.parameters
        return encoders + memory + (1 + self.has_value_head) * layers + heads

    @property
    def _hidden_shapes(self) -> list[tuple[int, int]]:
        return list(pairwise((self._before_hidden, *self.hidden)))

    @property
    def largest_parameter(self) -> int:
        """Numbers in the largest weight."""
        weights = [prod(shape) for shape in self._hidden_shapes]
        weights.append((self._before_hidden, *self.hidden)[-1] * self.n_actions)
        if self.memory is not None:
            weights.append(self.memory.largest_parameter)
        return max(*weights, *(encoder.largest_parameter for _, encoder in self.encoders))

    @property
    def weights_bytes(self) -> int:
        return FLOAT_BYTES * self.parameters

    @property
    def policy_parameters(self) -> int:
        """Parameters of the network, and of its target network if it has one."""
        return (1 + self.has_target) * self.parameters

    @property
    def policy_bytes(self) -> int:
        return FLOAT_BYTES * self.policy_parameters

    @property
    def training_bytes(self) -> int:
        """Bytes of the policy's weights, the optimiser's two moments and the gradients."""
        return self.policy_bytes + 3 * self.weights_bytes

    def kept_weights_bytes(self, *, bf16: bool) -> int:
        """Bytes of the weight copies that the network caches in evaluation mode.

        A target network is always in that mode.
        """
        return sum(encoder.kept_weights_bytes(bf16=bf16) for _, encoder in self.encoders)

    def radam_blocks(self) -> list[int]:
        """Return the sizes of the blocks alive together while RAdam moves the largest parameter.

        Torch computes the step out of place: the corrected first moment, that times the learning
        rate, the root of the second moment, its reciprocal, and that times its correction.
        """
        return 5 * [FLOAT_BYTES * self.largest_parameter]

    def step_blocks(self, batch_size: int, *, bf16: bool, way: Bf16Way = "native") -> Blocks:
        """Return the sizes of the memory blocks alive together in each part of a gradient step.

        The features of the parts are made one after the other. What the earlier ones keep is alive
        while later ones are made, and while their gradients are computed.
        """
        found: Blocks = {}
        kept: list[int] = []
        for name, encoder in self.encoders:
            own = encoder.step_blocks(batch_size, bf16=bf16, way=way)
            place = f" of {name}" if len(self.encoders) > 1 else ""
            found |= {f"{moment}{place}": [*kept, *blocks] for moment, blocks in own.items()}
            kept += own["forward"]
        if self.memory is not None:
            kept += self.memory.step_blocks(batch_size)
            gates = FLOAT_BYTES * self.memory.gates * self.memory.size * batch_size
            found["forward of the memory"] = kept
            found["backward of the memory"] = [*kept, gates]
        if len(self.encoders) > 1 or self.hidden:
            found |= self._head_blocks(kept, batch_size)
        return found

    def _head_blocks(self, kept: list[int], batch_size: int) -> Blocks:
        """Return the blocks of the hidden layers, which keep their outputs; see `step_blocks`."""
        joined = [FLOAT_BYTES * self.features * batch_size] if len(self.encoders) > 1 else []
        outputs = [FLOAT_BYTES * units * batch_size for units in self.hidden]
        each = 2 if self.layer_norm != "none" else 1  # normalised and not
        kept = [*kept, *joined, *(1 + self.has_value_head) * each * outputs]
        widest = max([FLOAT_BYTES * self._before_hidden * batch_size, *outputs])
        return {"forward of the hidden layers": kept, "backward hidden": [*kept, widest, widest]}

    def sample_bytes(self, *, bf16: bool) -> int:
        """Return the bytes that one more sample adds to a gradient step's most expensive part."""
        one, two = (self.step_blocks(size, bf16=bf16) for size in (1, 2))
        return max(1, *(sum(two[moment]) - sum(one[moment]) for moment in one))


def _encoders(
    observation_format: ObservationFormat, network: NetworkConfig, layer_norm: LayerNorm
) -> list[tuple[str, EncoderSize]]:
    """Return what makes features of each part, in the order of the space, which is by name."""
    found: dict[str, EncoderSize] = {
        name: _encoder(part, observation_format.stacks[name], network, layer_norm)
        for name, part in observation_format.parts
    }
    if observation_format.screen is not None:
        channels, height, width = observation_format.shape
        found[SCREEN] = _SCREEN_SIZES[network.screen](
            channels=channels,
            height=height,
            width=width,
            features=network.features,
            layer_norm=layer_norm,
        )
    return sorted(found.items())


def _encoder(
    part: PartFormat, stack: int, network: NetworkConfig, layer_norm: LayerNorm
) -> EncoderSize:
    match part.kind:
        case "vector":
            return VectorSize(features=stack * prod(part.shape))
        case "categories":
            return CategoriesSize(n=stack * prod(part.shape), n_values=part.n_values)
        case "grid":
            _, height, width = part.shape
            return GridSize(
                stack=stack,
                height=height,
                width=width,
                n_values=part.n_values,
                features=network.features,
                layer_norm=layer_norm,
            )


_CACHES_OF_A_PART = 3
_LEAST_BYTES = 56 * MIB
_MOST_BYTES = 112 * MIB


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
    micro = algorithm.micro_batch_size
    if micro == "auto" and not on_gpu:
        sample_bytes = network.sample_bytes(bf16=bf16)
        micro = micro_batch_size(
            batch, sample_bytes=sample_bytes, cpus=cpus, cache_bytes=cache_bytes
        )
    if micro == "auto" or micro is None:
        micro = batch
    whole = algorithm.whole_timesteps
    return min(batch, max(whole, micro - micro % whole))


# In samples. Starting the operations of a step takes torch about as long as computing this many.
SMALLEST_PART = 32


def n_minibatch_parts(n_samples: int, n_threads: int, sample_timesteps: int = 1) -> int:
    """Number of parts: one for each thread, or fewer if the parts would be too small.

    Args:
        sample_timesteps: timesteps of a sample, more than one if samples are sequences.
    """
    smallest = -(-SMALLEST_PART // sample_timesteps)
    return max(1, min(n_threads, n_samples // smallest))


def minibatch_parts(
    start: int, stop: int, n_threads: int, sample_timesteps: int = 1
) -> list[slice]:
    """Slices of the samples from `start` to `stop`, of sizes that differ by at most 1."""
    n_samples = stop - start
    n = n_minibatch_parts(n_samples, n_threads, sample_timesteps)
    bounds = [start + n_samples * part // n for part in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]
