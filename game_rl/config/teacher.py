"""The policy that a DQN is drawn towards."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.run_at import RunAt
from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, Timesteps

LEAST_VALIDATION_EPISODES = 200
"""A standard error of 3.5 points where a policy wins half of them."""


class TeacherConfig(StrictModel):
    """Adds weight x KL(teacher's softmax || student's softmax) to the loss (QDagger)."""

    run: Annotated[RunAt, Field(examples=["runs/duel_pqn", "runs/duel_pqn@200000"])]
    """A run of dqn or pqn: its best policy, or with @T its checkpoint of timestep T."""
    weight: Positive = 3.0
    """Of the divergence at first; it falls to 0 as the student's success rate in evaluations comes
    up to the teacher's."""
    temperature: Positive | Literal["auto"] = "auto"
    """By which values of actions are divided before the softmax; auto: the teacher's likeliest
    action gets a probability of 0.75 in half of the situations."""
    until: Timesteps | None = None
    """From this timestep on the weight is 0; null: success rates alone decide."""
    keep_if_better: bool = True
    """At the end student and teacher play the same new episodes; the run's best is then the
    teacher, unless the student has the higher mean reward."""
