"""The section `teacher`: the policy that a DQN is drawn towards."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.run_at import RunAt
from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, Timesteps

LEAST_VALIDATION_EPISODES = 200
"""A success rate of one half in 200 episodes has a standard error of 3.5 points."""


class TeacherConfig(StrictModel):
    """A policy that the agent is drawn towards (QDagger).

    weight x KL(teacher's softmax || student's softmax) is added to the loss.
    """

    run: Annotated[RunAt, Field(examples=["runs/duel_pqn", "runs/duel_pqn@200704"])]
    """A run of dqn or pqn. Its best policy is the teacher, or its checkpoint of timestep T with
    @T."""
    weight: Positive = 3.0
    """Weight of the divergence at the beginning. It falls to 0 as the student's success rate in
    evaluations approaches the teacher's."""
    temperature: Positive | Literal["auto"] = "auto"
    """Number by which the values of actions are divided before the softmax. auto: such that the
    teacher's likeliest action has a probability of at least 0.75 in half of the situations."""
    until: Timesteps | None = None
    """Timestep from which the weight is 0; null: only the success rates decide."""
    keep_if_better: bool = True
    """Whether student and teacher play the same new episodes at the end. The run's best policy is
    then the teacher, unless the student has the higher mean reward."""
