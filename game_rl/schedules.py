"""Numbers that change over training."""

from collections.abc import Callable, Mapping

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


class Ramp:
    """A straight line from `start` to `end` over so many timesteps, then `end`.

    It counts the timesteps of a training, so that it goes on over a break as if there had been
    none; `restart` begins it anew at any of them.
    """

    def __init__(self, start: float, end: float, *, timesteps: int) -> None:
        self._start, self._end, self._timesteps = start, end, timesteps
        self._began_at = 0

    def at(self, timestep: int) -> float:
        """Start + (end - start) min(1, t / timesteps), with t counted from the last restart."""
        share = min(1.0, (timestep - self._began_at) / self._timesteps)
        return self._start + (self._end - self._start) * share

    def restart(self, *, at: int, start: float | None = None) -> None:
        """Begin anew at timestep `at`, from `start` or from where it began the last time."""
        self._began_at = at
        self._start = self._start if start is None else start

    def state(self) -> dict[str, float]:
        """What `load_state` of another Ramp takes to become this one; JSON can hold it."""
        return {
            "start": self._start,
            "end": self._end,
            "timesteps": self._timesteps,
            "began_at": self._began_at,
        }

    def load_state(self, state: Mapping[str, float]) -> None:
        self._start, self._end = state["start"], state["end"]
        self._timesteps, self._began_at = int(state["timesteps"]), int(state["began_at"])
