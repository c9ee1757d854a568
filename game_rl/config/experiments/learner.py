"""The settings of an experiment's learner, which learns from what the members play."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, JsonValue

from game_rl.config.experiments.executors import ExecutorConfig, RayExecutorConfig
from game_rl.config.schema import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import Timesteps

BEST_MEMBER = "best_member"
TEACHERS = (BEST_MEMBER, None)
OWN_KEYS = ("teacher", "member_shares")
"""Keys of a learner's section that a run does not have."""


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


def member_shares_of(learner: Mapping[str, JsonValue]) -> dict[str, float] | None:
    """Return the weights by a member's number or `best_member`, or None if the key is not there.

    Args:
        learner: the section of the learner, in which `member_shares_problems` finds nothing.
    """
    found = learner.get("member_shares")
    if found is None:
        return None
    assert isinstance(found, dict)
    return {name: float(weight) for name, weight in found.items()}  # type: ignore[arg-type]


def member_shares_problems(learner: Mapping[str, JsonValue], *, members: int) -> Iterator[Problem]:
    """Check the key `member_shares` in the section of the learner."""
    place, found = ("learner", "member_shares"), learner.get("member_shares")
    if found is None:
        return
    example = f"such as {{{BEST_MEMBER}: 3}}: the others have 1 each"
    if not isinstance(found, dict) or not found:
        yield Problem(place, f"found {found}; write weights of members, {example}")
        return
    names = {BEST_MEMBER, *map(str, range(members))}
    for name, weight in found.items():
        if name not in names:
            yield Problem(
                (*place, name),
                f"no member has this number; write one from 0 to {members - 1}, or {BEST_MEMBER}",
                (("members",),),
            )
        least = "above 0" if name == BEST_MEMBER else "from 0 on"
        if not _is_weight(weight) or (name == BEST_MEMBER and not weight):
            yield Problem((*place, name), f"found {weight}; write a number {least}")
    if BEST_MEMBER not in found and all(found.get(str(n), 1) == 0 for n in range(members)):
        yield Problem(place, "no member has a weight above 0; give one a weight")


def _is_weight(value: JsonValue) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf  # type: ignore[operator]


def teacher_problems(learner: Mapping[str, JsonValue]) -> Iterator[Problem]:
    """Check the key `teacher` in the section of the learner."""
    if learner.get("teacher") not in TEACHERS:
        yield Problem(
            ("learner", "teacher"),
            f"found {learner['teacher']}; write best_member, or null for no teacher",
        )
