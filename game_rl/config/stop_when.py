"""The section `stop_when`: conditions under which a run ends before its total_timesteps."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import Count, Positive

_NO_IMPROVEMENT = "more than {:,} evaluations in a row without a better mean reward"


class StopWhenConfig(StrictModel):
    """Conditions under which the run ends before total_timesteps. Any of them is enough."""

    success_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Success rate that ends the run. It must be reached in the usual evaluations and then in
    confirm_episodes new episodes; 0.95 is 95 %."""
    mean_reward: float | None = None
    """Mean reward that ends the run, reached in the same way."""
    evaluations: Count = 2
    """Number of evaluations in a row that must reach success_rate or mean_reward before new
    episodes are played. All evaluations of a run play the same episodes."""
    confirm_episodes: Count = 100
    """Number of new episodes that must reach it as well. They are new each time, and played in the
    way that counted in the evaluation: with the likeliest actions or with drawn ones."""
    no_improvement_evaluations: Count | None = None
    """Number of evaluations in a row without a new best mean reward that the run goes on after; one
    more ends it, as with StopTrainingOnNoModelImprovement of Stable-Baselines3."""
    hours: Annotated[Positive, Field(le=100_000)] | None = None
    """Hours of training after which the run ends, added up over all resumes."""

    @property
    def has_goal(self) -> bool:
        """Whether a success rate or a mean reward ends the run, once new episodes confirm it."""
        return self.success_rate is not None or self.mean_reward is not None

    @property
    def in_words(self) -> tuple[str, ...]:
        """Return a description of each condition."""
        return tuple(
            text.format(value)
            for value, text in (
                (self.success_rate, f"a success rate of {{:g}} {self._proof}"),
                (self.mean_reward, f"a mean reward of {{:g}} {self._proof}"),
                (self.no_improvement_evaluations, _NO_IMPROVEMENT),
                (self.hours, "{:g} h of training"),
            )
            if value is not None
        )

    @property
    def _proof(self) -> str:
        times = "an evaluation"
        if self.evaluations > 1:
            times = f"{self.evaluations:,} evaluations in a row"
        return f"in {times} and in {self.confirm_episodes:,} new episodes"

    def problems(self) -> Iterator[Problem]:
        if not self.in_words:
            yield Problem(
                (),
                "has no condition, so it would never end the run; write success_rate, mean_reward, "
                "no_improvement_evaluations or hours, or stop_when: null",
            )
