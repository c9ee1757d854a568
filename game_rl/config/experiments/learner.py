"""A learner of what the members of an experiment play: its part of the experiment's config."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, JsonValue

from game_rl.config.experiments.executors import ExecutorConfig, RayExecutorConfig
from game_rl.config.lake import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import Timesteps

TEACHERS = ("best_member", None)


class LearnerStretchConfig(StrictModel):
    """What the learner does once the members have played."""

    gradient_steps: Annotated[int, Field(ge=1, le=10**9)] = 2_000
    """On rows of the Lake alone, before it plays."""
    timesteps: Timesteps = 4_096
    """That it then plays itself, all its emulators together."""


def lake_problems(lake: LakeConfig) -> Iterator[Problem]:
    """Of the Lake that all members write."""
    if lake.path is not None:
        message = "the Lake is the folder lake in run_dir: remove the line"
        yield Problem(("lake", "path"), message)


def one_lake_problems(executor: ExecutorConfig, *, kind: str) -> Iterator[Problem]:
    """Of where members are that write one Lake."""
    if isinstance(executor, RayExecutorConfig) and executor.storage is not None:
        yield Problem(
            ("executor", "storage"),
            f"members of a {kind} write one Lake, in run_dir, so their nodes share its file "
            "system: remove the line, or train on one machine",
        )


def teacher_problems(learner: Mapping[str, JsonValue]) -> Iterator[Problem]:
    """Of the key `teacher` in the section of the learner."""
    if learner.get("teacher") not in TEACHERS:
        yield Problem(
            ("learner", "teacher"),
            f"found {learner['teacher']}; write best_member, or null for no teacher",
        )
