"""The section `learner`: its settings, and the keys that the experiment decides for it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from game_rl.config.allowed_changes import LEARNER_ROWS, LEARNER_WEIGHTS, KeyRule, role_in_words
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Key, Problem, StrictModel, differences, value_at
from game_rl.config.values import Timesteps
from game_rl.config.yaml_tree import Node

BEST_MEMBER = "best_member"


class LearnerStretchConfig(StrictModel):
    """Length of the learner's training each time the members have played."""

    gradient_steps: Annotated[int, Field(ge=1, le=10**9)] = 2_000
    """Number of gradient steps on rows of the Lake alone, before the learner plays."""
    timesteps: Timesteps = 4_096
    """Number of timesteps that the learner then plays itself, all its emulators together."""


class LearnerKeys(StrictModel):
    """What an experiment's section `learner` says beyond the config of a run."""

    if TYPE_CHECKING:  # each kind declares it, at its place in the file
        learner: dict[str, JsonValue] | None

    @property
    def member_shares(self) -> dict[str, float] | None:
        """Weights of members in what the learner draws, or None if every row is equally likely to
        be drawn.

        They are by a member's number or `best_member`; a member that is not named has 1.
        """
        found = (self.learner or {}).get("member_shares")
        if found is None:
            return None
        assert isinstance(found, dict)
        return {name: float(weight) for name, weight in found.items()}  # type: ignore[arg-type]

    @property
    def is_taught(self) -> bool:
        """Whether the best member of a generation or round teaches the learner."""
        return (self.learner or {}).get("teacher") is not None

    @property
    def learner_keys(self) -> dict[str, JsonValue]:
        """The keys of the section `learner` that a run does not have, with their values."""
        teacher = BEST_MEMBER if self.is_taught else None
        return {"teacher": teacher, "member_shares": (self.learner or {}).get("member_shares")}


def lake_problems(lake: LakeConfig) -> Iterator[Problem]:
    """Check the Lake that all members write."""
    if lake.path is not None:
        message = "the Lake is always the folder lake in run_dir: remove the line"
        yield Problem(("lake", "path"), message)


def learner_key_problems(learner: Mapping[str, JsonValue], *, members: int) -> Iterator[Problem]:
    """Check the keys `teacher` and `member_shares` in the section of the learner."""
    if learner.get("teacher") not in (BEST_MEMBER, None):
        yield Problem(
            ("learner", "teacher"),
            f"found {learner['teacher']}; write best_member, or null for no teacher",
        )
    place = ("learner", "member_shares")
    found = learner.get("member_shares")
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


Decided = Iterator[tuple[Key, Any, str]]

LEARN_FROM: Key = ("algorithm", "learn_from")
FOLLOW: Key = (*LEARN_FROM, "follow_every_s")
OFFLINE: Key = (*LEARN_FROM, "offline")
STOP_WHEN: Key = ("stop_when",)


def decided_key_problems(
    section: Node, name: str, rule: KeyRule, *, kind: str, stage: str, example: str
) -> Iterator[Problem]:
    """Yield keys in a run's section that the experiment decides.

    Args:
        section: the section of the member or the learner.
        name: name of the section.
        rule: binds the keys that the experiment decides.
        kind: kind of the experiment, and `stage` its word for a generation, for messages.
        example: a file that the section might name.
    """
    for dotted in rule.bound_keys():
        key = tuple(dotted.split("."))
        if section.has(key):
            reason = str(rule.reason(dotted)).format(kind=kind, stage=stage)
            message = f"{reason} ({role_in_words(dotted)}): remove the line"
            yield Problem((name, *key), message)
    config = section.nearest(("config",))
    if section.has(("config",)) and not (isinstance(config.value, str) and config.value):
        yield Problem((name, "config"), f"names no file; write one, such as {example}")


def as_run(learner: Node, own_keys: Sequence[str]) -> Node:
    """Return the learner's section as a run's config, with `learn_from` below `algorithm`.

    Args:
        own_keys: keys of the experiment that no run has; they are removed.
    """
    for key in own_keys:
        learner = learner.without((key,))
    if learner.has(("learn_from",)):
        short = learner.nearest(("learn_from",))
        learner = learner.without(("learn_from",)).with_value(LEARN_FROM, short)
    return learner


def disagreements(
    run: RunConfig, learner: RunConfig, *, are_cloned: bool = True
) -> Iterator[Problem]:
    """Yield what keeps the learner from using members' rows, or members from using its weights.

    Args:
        are_cloned: whether members continue with the learner's weights.
    """
    if are_cloned and not run.algorithm.has_q_network:
        yield Problem(
            ("member",),
            f"{run.algorithm.name} has no values of actions, so it cannot continue with the "
            "learner's weights; use pqn or dqn, such as config: duel_pqn.yaml",
        )
        return
    rules = [LEARNER_ROWS]
    if are_cloned:
        rules.append(LEARNER_WEIGHTS)
    for rule in rules:
        for key, (theirs, ours) in _differences(rule, run, learner):
            yield Problem(
                ("learner", *key.split(".")),
                f"{ours} differs from the members' {theirs} ({role_in_words(key)}); "
                f"{rule.reason(key)}",
            )


def _differences(
    rule: KeyRule, run: RunConfig, learner: RunConfig
) -> Iterator[tuple[str, tuple[object, object]]]:
    """Yield the keys that the rule binds and whose values differ, with both.

    `algorithm.reward` is bound only if members learn. The Lake has the game's own rewards, so rows
    fit whatever the settings are, and members that do not learn only compare the values.
    """
    of_members = run.model_dump()
    of_learner = learner.model_dump()
    for key in rule.bound_keys():
        theirs = value_at(of_members, key)
        ours = value_at(of_learner, key)
        if key == "algorithm.reward" and not run.algorithm.learns:
            continue
        if isinstance(theirs, dict) and isinstance(ours, dict):
            yield from differences({key: theirs}, {key: ours}).items()
        elif theirs != ours:
            yield key, (theirs, ours)
