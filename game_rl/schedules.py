"""Numbers that change over training, as functions of SB3's `progress_remaining`."""

from collections.abc import Callable

Schedule = Callable[[float], float]


def linear(start: float, end: float) -> Schedule:
    """value(p) = end + (start - end) p, with p falling from 1 (first timestep) to 0 (last)."""

    def value(progress_remaining: float) -> float:
        return end + (start - end) * progress_remaining

    return value


def constant(value: float) -> Schedule:
    return linear(value, value)
