"""Events that say what a training has achieved, what it does, and what its user may change."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.files.saved import Natural
from game_rl.statistics import mean_interval, wilson_interval
from game_rl.timed_event import RunEvent


class BaselinePlayed(RunEvent):
    """A policy that has learned nothing was played before the training, to compare with."""

    event: Literal["baseline_played"] = "baseline_played"
    action: str = ""
    """Name of the action that it always takes, the best of all; empty: it draws each action."""
    episodes: Annotated[int, Field(ge=1)]
    mean_reward: float
    std_reward: float
    success_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    mean_length: float
    seconds: float

    @property
    def name(self) -> str:
        return f"always {self.action}" if self.action else "random actions"

    @property
    def in_words(self) -> str:
        success = "" if self.success_rate is None else f"success {self.success_rate:.0%}, "
        reward = f"reward {self.mean_reward:.2f} in {self.episodes:,} episodes"
        return f"{self.name}: {success}{reward}"


class ConfirmationPlayed(RunEvent):
    """New episodes were played, because the evaluations reached a goal of `stop_when`."""

    event: Literal["confirmation_played"] = "confirmation_played"
    deterministic: bool
    """Whether the policy took its most probable actions instead of drawing them."""
    episodes: Natural
    mean_reward: float
    std_reward: float
    success_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    mean_length: float
    seconds: float
    is_reached: bool
    """Whether they reached the goal as well, so that the run ends."""
    over_at_start: Natural = 0
    """Episodes that were over before the first action, none of which counts as a success here."""

    goal: Literal["success_rate", "mean_reward"] | None = None
    """What had to be reached; None in logs of older versions."""

    @property
    def in_words(self) -> str:
        """The result that decided, with its 95 % interval."""
        is_rate = self.success_rate is not None and self.goal != "mean_reward"
        text = self._rate_in_words if is_rate else self._mean_in_words
        if not self.over_at_start:
            return text
        return (
            f"{text}; {self.over_at_start:,} of them were over before the first action and do not "
            "count: check env.start_states, and the endings of game.yaml"
        )

    @property
    def _rate_in_words(self) -> str:
        """The rate with Wilson's interval."""
        rate = self.success_rate or 0.0
        low, high = wilson_interval(round(rate * self.episodes), self.episodes)
        episodes = f"{100 * rate:.3g}% of {self.episodes:,} new episodes"
        return f"{episodes}, 95% interval {100 * low:.0f} to {100 * high:.0f}%"

    @property
    def _mean_in_words(self) -> str:
        interval = mean_interval(self.mean_reward, self.std_reward, self.episodes)
        mean = f"mean reward {self.mean_reward:.4g} in {self.episodes:,} new episodes"
        if interval is None:
            return mean
        return f"{mean}, 95% interval {interval[0]:.4g} to {interval[1]:.4g}"


class MilestoneReached(RunEvent):
    """Some env has reached something that none of the run's envs had reached before.

    `timesteps` and `waited_frames` are those at which it was reached, which is before the end of
    the rollout after which the event is written.
    """

    event: Literal["milestone_reached"] = "milestone_reached"
    kind: Literal["reward_term", "start_state", "variable"]
    """A reward term that earned more than 0, a start state that was won, or a new maximum of a
    variable, or of an element of an array, that game.yaml's `milestones` names."""
    name: str
    """Name of the reward term, the start state or the variable; `flags[12]` for an element."""
    value: int | float | None = None
    """Value of the variable; None for the others."""
    text: str
    hours: float
    """Hours of training so far, over all sessions."""


class HintGiven(RunEvent):
    """The curves show something that the user should know, and may want to change."""

    event: Literal["hint_given"] = "hint_given"
    name: str
    """Name of the hint, as in docs/how-to/hints.md."""
    text: str
    key: str
    """Key of the config or of game.yaml to change."""
    episode: Annotated[int, Field(ge=1)] | None = None
    """Number of a logged training episode that shows it, for `game-rl record RUN --logged`; None if
    none does."""


class PlanPassed(RunEvent):
    """The run has taken 80 % of the memory or disk that `preflight.json` forecasts, or all of it.

    Each of them is reported once, and again if the forecast has changed.
    """

    event: Literal["plan_passed"] = "plan_passed"
    resource: Literal["disk", "ram"]
    share: Annotated[float, Field(gt=0)]
    """0.8 or 1.0."""
    used_bytes: Natural
    planned_bytes: Natural
    part: str | None = None
    """What takes most: a folder of the run directory, or for RAM the part of the plan that grows
    most; None if there is none."""
    text: str


class StillWorking(RunEvent):
    """Something takes more than two seconds; about once a second until it is done."""

    is_kept = False

    event: Literal["still_working"] = "still_working"
    text: str
    seconds: float
    """Time that it has taken so far."""
