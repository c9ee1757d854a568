"""The settings of an experiment's learner, which learns from what the members play."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, JsonValue

from game_rl.config.experiments.executors import ExecutorConfig, RayExecutorConfig
from game_rl.config.lake import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import Timesteps

TEACHERS = ("best_member", None)


class LearnerStretchConfig(StrictModel):
    """Length of the learner's training each time the members have played."""

    gradient_steps: Annotated[int, Field(ge=1, le=10**9)] = 2_000
    """Number of gradient steps on rows of the Lake alone, before the learner plays."""
    timesteps: Timesteps = 4_096
    """Number of timesteps that the learner then plays itself, all its emulators together."""


def lake_problems(lake: LakeConfig) -> Iterator[Problem]:
    """Check the Lake that all members write."""
    if lake.path is not None:
        message = "the Lake is always the folder lake in run_dir: remove the line"
        yield Problem(("lake", "path"), message)


def one_lake_problems(executor: ExecutorConfig, *, kind: str) -> Iterator[Problem]:
    """Check that all members can write one Lake from where they run."""
    if isinstance(executor, RayExecutorConfig) and executor.storage is not None:
        yield Problem(
            ("executor", "storage"),
            f"members of a {kind} write one Lake, in run_dir, so their nodes must share its file "
            "system: remove the line, or train on one machine",
        )


def teacher_problems(learner: Mapping[str, JsonValue]) -> Iterator[Problem]:
    """Check the key `teacher` in the section of the learner."""
    if learner.get("teacher") not in TEACHERS:
        yield Problem(
            ("learner", "teacher"),
            f"found {learner['teacher']}; write best_member, or null for no teacher",
        )
