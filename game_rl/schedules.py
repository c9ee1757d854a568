"""Numbers that change over training, as functions of SB3's `progress_remaining`."""

from collections.abc import Callable

Schedule = Callable[[float], float]


def linear(start: float, end: float) -> Schedule:
    """value(p) = end + (start - end) p, with p falling from 1 (first timestep) to 0 (last)."""

    def value(progress_remaining: float) -> float:
        return end + (start - end) * progress_remaining

    return value


def ending_early(schedule: Schedule, share: float) -> Schedule:
    """`schedule` over this share of the training, and its last value after that.

    A run whose `total_timesteps` grew on the way goes on along its schedules: they are not
    stretched. A share of more than 1 ends on the way.
    """
    if share == 1:
        return schedule

    def value(progress_remaining: float) -> float:
        return schedule(max(0.0, 1 - (1 - progress_remaining) / share))

    return value


def constant(value: float) -> Schedule:
    return linear(value, value)
