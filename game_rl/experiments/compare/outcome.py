"""The outcome of one seed of an arm, whatever it is read from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from game_rl.saved import Saved

Metric = Literal["success_rate", "mean_reward"]
_Count = Annotated[int, Field(ge=0)]


class Point(Saved):
    """An evaluation during training."""

    timesteps: _Count
    """Timesteps of the run itself."""
    total_timesteps: _Count
    """Timesteps that the run and everything that it comes from had played by then."""
    total_frames: _Count
    mean_reward: float
    success_rate: float | None = None


@dataclass(frozen=True)
class Score:
    """The result of some episodes."""

    mean_reward: float
    success_rate: float | None
    episodes: int

    def value(self, metric: Metric) -> float | None:
        return self.success_rate if metric == "success_rate" else self.mean_reward


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one seed of an arm.

    Attributes:
        name: path of its folder or file.
        score: None if it failed.
        timesteps: timesteps that the run has played itself.
        total_timesteps: timesteps that the run and everything that it comes from have played.
        failure: why it failed; empty if it did not.
    """

    name: str
    seed: int
    score: Score | None
    curve: tuple[Point, ...]
    timesteps: int
    total_timesteps: int
    total_frames: int
    failure: str = ""


@dataclass(frozen=True)
class Arm:
    """Runs that differ by nothing but their seed."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def seeds(self) -> list[int]:
        return [outcome.seed for outcome in self.outcomes]

    def scores(self, metric: Metric, *, worst: float) -> list[float]:
        """Return one score for each seed; a seed that failed gets `worst`."""
        return [_value(outcome, metric, worst) for outcome in self.outcomes]


def worst_value(arms: Sequence[Arm], metric: Metric) -> float:
    """Return the score of a failed seed: success 0, or the lowest mean reward of all others."""
    if metric == "success_rate":
        return 0.0
    scores = [o.score.mean_reward for arm in arms for o in arm.outcomes if o.score is not None]
    return min(scores, default=0.0)


def _value(outcome: Outcome, metric: Metric, worst: float) -> float:
    value = None if outcome.score is None else outcome.score.value(metric)
    return worst if value is None else value
