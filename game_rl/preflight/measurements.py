"""Results of the package `measure` about a game, as plain numbers for forecasts."""

from dataclasses import dataclass
from statistics import mean, median


@dataclass(frozen=True)
class EpisodeLengths:
    """Lengths of episodes in random play.

    Attributes:
        timesteps: length of each episode.
        successes: number of episodes that the game file counts as a success; None if it defines no
            success.
        truncated: number of episodes that max_episode_timesteps, or the end of the probe, cut
            short.
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
    """Size of a timestep in a Lake of random play.

    Agents that see more of a game leave frames that compress less.
    """

    timesteps: int
    bytes_per_timestep: float
