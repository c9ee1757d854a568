"""Several comparisons at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values, each adjusted so that all of them together err as often as one would.

    In ascending order the i-th of m (from 0) is the largest of (m - j) p_j over all j <= i, at most
    1. Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.

    Returns:
        In the order of `p_values`.
    """
    count, largest = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted
