"""Confidence intervals of shares."""

from math import sqrt

_Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927), which is also valid for 0 and 1.

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n), with p = successes / n.
    """
    n, z = trials, _Z95
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
