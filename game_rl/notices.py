"""Events that say what a training has achieved, and what its user may want to change."""

from typing import Literal

from game_rl.timed_event import RunEvent


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
