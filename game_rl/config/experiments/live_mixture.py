"""Mixtures in mode live: keys that differ in their runs' configs, and keys of one mode only."""

from collections.abc import Iterator

from game_rl.config.experiments.learner import BEST_MEMBER
from game_rl.config.experiments.learner_runs import FOLLOW, OFFLINE, Decided
from game_rl.config.experiments.mixture import MixtureConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.yaml_tree import Node

SEAL_EVERY_TIMESTEPS = 1_024
"""With 16 emulators this makes full blocks, of 64 frames."""
FOLLOW_EVERY_S = 2.0


def keys_of_rounds(root: Node, learner: Node) -> Iterator[Problem]:
    """Yield keys that have no meaning without rounds."""
    reasons: dict[Key, str] = {
        ("learner_starts",): "the learner has one run, which begins with new weights",
        ("learner_per_round", "gradient_steps"): "the learner learns while it plays",
        ("clone",): "no member is cloned in mode: live",
        ("keep_rounds",): "there are no rounds to keep",
    }
    for key, reason in reasons.items():
        if root.has(key):
            yield Problem(key, f"{reason}: remove the line, or write mode: rounds")
    if root.has(("learner", "teacher")) and root.nearest(("learner", "teacher")).value is not None:
        message = "the best member is known only at the end: remove it, or write mode: rounds"
        yield Problem(("learner", "teacher"), message)
    if root.has(("learner", "member_shares", BEST_MEMBER)):
        message = (
            "the best member is known only at the end: write numbers of members, or mode: rounds"
        )
        yield Problem(("learner", "member_shares", BEST_MEMBER), message)
    if learner.has(OFFLINE):
        message = "the learner plays from the beginning: remove it, or write mode: rounds"
        yield Problem(("learner", *OFFLINE), message)


def keys_of_live(learner: Node) -> Iterator[Problem]:
    """Yield keys that have no meaning in rounds."""
    if learner.has(FOLLOW):
        message = "the learner reads the Lake only at breaks: remove the line, or write mode: live"
        yield Problem(("learner", *FOLLOW), message)


def decided_of_live_member(config: MixtureConfig) -> Decided:
    if config.lake.seal_every_timesteps is None:
        yield ("lake", "seal_every_timesteps"), SEAL_EVERY_TIMESTEPS, "mode: live"


def decided_of_live_learner(config: MixtureConfig, learner: Node) -> Decided:
    """Yield keys of the learner's config that differ in mode live.

    Args:
        config: the mixture's config.
        learner: the learner's section, which may set how often it looks for new rows.
    """
    yield ("total_timesteps",), config.learner_timesteps, "learner_per_round.timesteps"
    yield OFFLINE, None, "mode: live"
    if not learner.has(FOLLOW):
        yield FOLLOW, FOLLOW_EVERY_S, "mode: live"
