"""How the cores share a minibatch.

Training and the preflight both use this module. It does not import torch.
"""

from itertools import pairwise

# In samples. Starting the operations of a step takes torch about as long as computing this many.
SMALLEST_PART = 32


def n_parts(n_samples: int, n_threads: int) -> int:
    """Number of parts: one for each thread, or fewer if the parts would be too small."""
    return max(1, min(n_threads, n_samples // SMALLEST_PART))


def parts(start: int, stop: int, n_threads: int) -> list[slice]:
    """Slices of the samples from `start` to `stop`, of sizes that differ by at most 1."""
    n_samples = stop - start
    n = n_parts(n_samples, n_threads)
    bounds = [start + n_samples * part // n for part in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]
