"""Schedules: values that change over the training."""

from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[float], float]
"""A function of SB3's `progress_remaining`, which falls from 1 to 0."""


def linear(start: float, end: float) -> Schedule:
    """value(p) = end + (start - end) p, with p falling from 1 (first timestep) to 0 (last)."""

    def value(progress_remaining: float) -> float:
        return end + (start - end) * progress_remaining

    return value


def ending_early(schedule: Schedule, share: float) -> Schedule:
    """Run `schedule` over this share of the training, and keep its last value after that.

    A share above 1 means that the training ends before the schedule does. With the matching share,
    a run whose `total_timesteps` has changed follows its old schedule, which is not stretched.
    """
    if share == 1:
        return schedule

    def value(progress_remaining: float) -> float:
        return schedule(max(0.0, 1 - (1 - progress_remaining) / share))

    return value


def constant(value: float) -> Schedule:
    return linear(value, value)


@dataclass(frozen=True)
class Ramp:
    """A straight line from `start` to `end` over `timesteps`, then constant at `end`."""

    start: float
    end: float
    timesteps: int

    def at(self, timestep: int) -> float:
        """Start + (end - start) min(1, t / timesteps)."""
        share = min(1.0, timestep / self.timesteps)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class Restart:
    """A straight line that begins at timestep `at` with `start`, and lasts `over` timesteps."""

    at: int
    start: float
    over: int


@dataclass(frozen=True)
class RestartingRamp:
    """A ramp with restarts: at each, it jumps to a higher value and then returns to the ramp.

    The value depends on the timestep alone, so resuming or forking a run changes nothing.

    Attributes:
        main: the ramp.
        restarts: the restarts, which do not overlap.
    """

    main: Ramp
    restarts: tuple[Restart, ...] = ()

    def at(self, timestep: int) -> float:
        """max(main(t), start + (main(at + over) - start) (t - at) / over) in a restart.

        Outside of a restart: main(t). A restart covers at <= t < at + over.
        """
        usual = self.main.at(timestep)
        for restart in self.restarts:
            passed = timestep - restart.at
            if 0 <= passed < restart.over:
                goal = self.main.at(restart.at + restart.over)
                line = restart.start + (goal - restart.start) * passed / restart.over
                return max(usual, line)
        return usual
