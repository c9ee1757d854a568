"""How much of a minibatch goes through the network at a time: `micro_batch_size: auto`.

Free of torch, for who computes and for who predicts.
"""

from game_rl.algorithms.network_size import NatureCnn
from game_rl.buffers.batch_parts import SMALLEST_PART
from game_rl.config.algorithms import AlgorithmConfig, PPOConfig
from game_rl.system.units import MIB

_CACHES_OF_A_PART = 3
_LEAST_BYTES, _MOST_BYTES = 56 * MIB, 112 * MIB


def micro_batch_size(batch_size: int, *, sample_bytes: int, cpus: int, cache_bytes: int) -> int:
    """Samples that all threads together go through at a time: 1 to `batch_size`.

    What one thread has of them is a part: as many samples as three times its share of the cache
    holds, but no less than 56 MiB of them and no more than 112. The minibatch is gone through in as
    few micro-batches of one size as such parts allow, and in so few that every thread has enough.

    Why (`docs/performance.md` has the figures): each part multiplies, copies and adds weights and
    gradients of its own, which below some 32 MiB of samples is a tenth of the time and more. With
    two threads on an EPYC, 16 MiB of L3 for each, parts of 56 MiB were no slower than the whole
    batch, whose blocks go back to the system after each use; larger ones won nothing.
    """
    part_bytes = min(max(_CACHES_OF_A_PART * cache_bytes, _LEAST_BYTES), _MOST_BYTES)
    rounds = -(-batch_size // (cpus * max(1, part_bytes // sample_bytes)))
    most_rounds = max(1, batch_size // (cpus * SMALLEST_PART))
    return -(-batch_size // min(rounds, most_rounds))


def timesteps_together(
    algorithm: AlgorithmConfig,
    network: NatureCnn,
    *,
    bf16: bool,
    on_gpu: bool,
    cpus: int,
    cache_bytes: int,
) -> int:
    """Of a minibatch, those that go through the network together; all where it is on a GPU.

    A GPU is the faster the more it gets, and the preflight knows a batch that is too large for it.

    Args:
        algorithm: whose `micro_batch_size`, where it has one, may be `auto`.
        network: its activations; how many actions there are does not matter.
        bf16: the network is computed in it.
        on_gpu: where the network is.
        cpus: threads that share a minibatch if it is not.
        cache_bytes: of each of them (`game_rl.system.caches`).
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
