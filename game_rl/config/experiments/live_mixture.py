"""Mixtures in mode live: what differs of their runs' configs, and keys that only rounds have."""

from collections.abc import Iterator

from game_rl.config.experiments.learner import BEST_MEMBER
from game_rl.config.experiments.learner_runs import FOLLOW, OFFLINE, Decided
from game_rl.config.experiments.mixture import MixtureConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.yaml_tree import Node

SEAL_EVERY_TIMESTEPS = 1_024
"""With 16 emulators, blocks of 64 frames, which are full."""
FOLLOW_EVERY_S = 2.0


def keys_of_rounds(root: Node, learner: Node) -> Iterator[Problem]:
    """Keys that say nothing where there are no rounds."""
    reasons: dict[Key, str] = {
        ("learner_starts",): "the learner has one run, which begins with new weights",
        ("learner_per_round", "gradient_steps"): "the learner learns while it plays",
        ("clone",): "nobody is cloned in mode: live",
        ("keep_rounds",): "there is one stretch, whose checkpoints stay",
    }
    for key, reason in reasons.items():
        if root.has(key):
            yield Problem(key, f"{reason}: remove the line, or write mode: rounds")
    if root.has(("learner", "teacher")) and root.nearest(("learner", "teacher")).value is not None:
        message = "no member is the best before the end: remove the line, or write mode: rounds"
        yield Problem(("learner", "teacher"), message)
    if root.has(("learner", "member_shares", BEST_MEMBER)):
        message = "no member is the best before the end: write numbers of members, or mode: rounds"
        yield Problem(("learner", "member_shares", BEST_MEMBER), message)
    if learner.has(OFFLINE):
        message = "the learner plays from the beginning: remove it, or write mode: rounds"
        yield Problem(("learner", *OFFLINE), message)


def keys_of_live(learner: Node) -> Iterator[Problem]:
    """Keys that say nothing in rounds."""
    if learner.has(FOLLOW):
        message = "the Lake is read at breaks only: remove the line, or write mode: live"
        yield Problem(("learner", *FOLLOW), message)


def decided_of_live_member(config: MixtureConfig) -> Decided:
    if config.lake.seal_every_timesteps is None:
        yield ("lake", "seal_every_timesteps"), SEAL_EVERY_TIMESTEPS, "mode: live"


def decided_of_live_learner(config: MixtureConfig, learner: Node) -> Decided:
    """Args: learner: its section, which may say how often it follows."""
    yield ("total_timesteps",), config.learner_timesteps, "learner_per_round.timesteps"
    yield OFFLINE, None, "mode: live"
    if not learner.has(FOLLOW):
        yield FOLLOW, FOLLOW_EVERY_S, "mode: live"
