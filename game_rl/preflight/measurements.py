"""What `measure` finds out about a game, as plain numbers that a forecast can use."""

from dataclasses import dataclass
from statistics import mean, median


@dataclass(frozen=True)
class EpisodeLengths:
    """Of random play, in timesteps.

    Attributes:
        successes: episodes that the game file calls a success; None if it does not say.
        truncated: episodes that max_episode_timesteps, or the end of the probe, cut short.
    """

    timesteps: tuple[int, ...]
    successes: int | None
    truncated: int

    @property
    def median(self) -> float:
        return median(self.timesteps)

    @property
    def mean(self) -> float:
        return mean(self.timesteps)

    @property
    def shortest(self) -> int:
        return min(self.timesteps)

    @property
    def longest(self) -> int:
        return max(self.timesteps)


@dataclass(frozen=True)
class MeasuredLake:
    """Of random play; agents that see more of a game compress less."""

    timesteps: int
    bytes_per_timestep: float
