"""Correction of p-values for several comparisons."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the probability of any false rejection is that of a single test.

    In ascending order, counted from 0, the i-th of m adjusted values is the largest (m - j) p_j
    over all j <= i, and at most 1. Source: Holm 1979, A Simple Sequentially Rejective Multiple Test
    Procedure.

    Returns:
        The adjusted values in the order of `p_values`.
    """
    count, largest = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted
