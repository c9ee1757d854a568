"""How the cores share a minibatch; free of torch, for who computes and for who predicts."""

from itertools import pairwise

# Samples. Torch needs about as long to begin the operations of a step as to do them for so many.
SMALLEST_PART = 32


def n_parts(n_samples: int, n_threads: int) -> int:
    """One for each thread, or fewer if these would be too small."""
    return max(1, min(n_threads, n_samples // SMALLEST_PART))


def parts(start: int, stop: int, n_threads: int) -> list[slice]:
    """Of the samples from `start` to `stop`, of sizes as alike as can be."""
    n_samples = stop - start
    n = n_parts(n_samples, n_threads)
    bounds = [start + n_samples * part // n for part in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]
