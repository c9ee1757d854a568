"""The part of a minibatch that goes through the network at a time: `micro_batch_size: auto`.

Does not import torch, because the preflight uses it as well as the training.
"""

from game_rl.algorithms.network_size import NatureCnn
from game_rl.buffers.batch_parts import SMALLEST_PART
from game_rl.config.algorithms import AlgorithmConfig, PPOConfig
from game_rl.system.units import MIB

_CACHES_OF_A_PART = 3
_LEAST_BYTES, _MOST_BYTES = 56 * MIB, 112 * MIB


def micro_batch_size(batch_size: int, *, sample_bytes: int, cpus: int, cache_bytes: int) -> int:
    """Return the samples that all threads together process at a time, 1 to `batch_size`.

    The samples of one thread are a part. A part has three times the bytes of the thread's share of
    the cache, but at least 56 and at most 112 MiB. The minibatch is divided into as few
    micro-batches of equal size as parts of that size allow, and into so few that each thread still
    gets SMALLEST_PART samples.

    The measurements are in `docs/performance.md`. Each part multiplies, copies and adds weights
    and gradients of its own, which takes a tenth of the time or more below some 32 MiB of samples.
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
    network: NatureCnn,
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
        cache_bytes: cache of each of these CPUs (`game_rl.system.caches`).
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
