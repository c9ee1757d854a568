"""Numbers that change over training."""

from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[float], float]
"""Of SB3's `progress_remaining`, which falls from 1 to 0."""


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


@dataclass(frozen=True)
class Ramp:
    """A straight line from `start` to `end` over so many timesteps, then `end`."""

    start: float
    end: float
    timesteps: int

    def at(self, timestep: int) -> float:
        """Start + (end - start) min(1, t / timesteps)."""
        share = min(1.0, timestep / self.timesteps)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class Restart:
    """From timestep `at` on a straight line that begins at `start`, over so many timesteps."""

    at: int
    start: float
    over: int


@dataclass(frozen=True)
class RestartingRamp:
    """A ramp that begins again from higher up, now and then, and comes back to itself.

    A function of the timestep alone, so a break in the training, or a fork, changes nothing.

    Attributes:
        main: the ramp.
        restarts: no two of which overlap.
    """

    main: Ramp
    restarts: tuple[Restart, ...] = ()

    def at(self, timestep: int) -> float:
        """max(main(t), start + (main(at + over) - start) (t - at) / over) in a restart.

        Elsewhere main(t). A restart holds for at <= t < at + over.
        """
        usual = self.main.at(timestep)
        for restart in self.restarts:
            passed = timestep - restart.at
            if 0 <= passed < restart.over:
                goal = self.main.at(restart.at + restart.over)
                line = restart.start + (goal - restart.start) * passed / restart.over
                return max(usual, line)
        return usual
