"""Probability that one arm beats another."""

from collections.abc import Sequence

import numpy as np


def probability_of_superiority(scores: Sequence[float], others: Sequence[float]) -> float:
    """Return the share of pairs (one of `scores`, one of `others`) in which the first is higher.

    Ties count half. The share is Mann-Whitney's U / (n m). Source: Mann and Whitney 1947; as the
    "probability of improvement" of one task in Agarwal et al. 2021, Deep RL at the Edge of the
    Statistical Precipice.
    """
    signs = np.sign(np.subtract.outer(np.asarray(scores), np.asarray(others)))
    return float((1 + signs.mean()) / 2)
