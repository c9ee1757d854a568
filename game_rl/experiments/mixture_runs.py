"""The configs of a mixture's runs: what a member, the learner and a clone begin with."""

import json
from hashlib import sha256
from typing import Any

from game_rl.config.changed_values import with_changed
from game_rl.config.mixtures import Mixture
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.records import Member
from game_rl.seeds import seed_for

_OF_THE_PLACE = ("run_dir", "fork")
_EXPLORING_ROUNDS = 0.5


def learner_folder(generation: int) -> str:
    """The name of the learner's run directory in a round."""
    return f"learner.g{generation:04d}"


def run_id(experiment: str, member: Member) -> str:
    """Of a member's run, which no other run has.

    Rows of a Lake are drawn in the order of the streams' names, which are these: so they ascend
    with the member's number and the round, whatever the id of the experiment is.
    """
    unique = sha256(f"{experiment}/{member.folder}".encode()).hexdigest()[:24]
    return f"{member.number:04x}{copied_after(member.folder) or 0:04x}{unique}"


def run_seed(mixture: Mixture, folder: str) -> int:
    """Of a run's own random numbers."""
    return seed_for(mixture.config.seed, f"run/{folder}")


def member_config(folder: ExperimentDir, mixture: Mixture, member: Member) -> RunConfig:
    """Of a member that is no clone."""
    changes: dict[Key, Any] = {
        ("run_dir",): folder.member(member.folder).root,
        ("seed",): run_seed(mixture, member.folder),
    }
    return with_changed(mixture.run, changes)


def learner_config(
    folder: ExperimentDir, mixture: Mixture, name: str, teacher: str | None
) -> RunConfig:
    """Of the learner in a round.

    Args:
        teacher: `RUN@T` of who teaches it; None: nobody.
    """
    changes: dict[Key, Any] = {
        ("run_dir",): folder.member(name).root,
        ("seed",): run_seed(mixture, name),
        ("algorithm", "teacher"): teacher_section(teacher),
    }
    return with_changed(mixture.learner, changes)


def teacher_section(teacher: str | None) -> dict[str, object] | None:
    """Clones decide who is better, and not the learner's run."""
    return None if teacher is None else {"run": teacher, "keep_if_better": False}


def clone_config(mixture: Mixture, name: str, *, generation: int) -> RunConfig:
    """Of a member that goes on as a clone after a round, and counts its timesteps from 0.

    Its learning rate goes on where the members' line is; exploration begins again.
    """
    config, algorithm = mixture.config, mixture.run.algorithm.model_dump(mode="json")
    left = config.rounds - generation
    rate, share = algorithm["learning_rate"], generation / config.rounds
    if isinstance(rate, dict):
        rate = rate | {"start": rate["start"] + (rate["end"] - rate["start"]) * share}
    exploration = {
        "start": config.clone.exploration,
        "end": min(config.clone.exploration, algorithm["exploration"]["end"]),
        "fraction": _EXPLORING_ROUNDS / left,
    }
    changes: dict[Key, Any] = {
        ("seed",): run_seed(mixture, name),
        ("total_timesteps",): left * config.timesteps_per_round,
        ("algorithm", "learning_rate"): rate,
        ("algorithm", "exploration"): exploration,
    }
    return with_changed(mixture.run, changes)


def sections_of(config: RunConfig) -> dict[str, Any]:
    """All that a fork of another run takes from this config, for a command line."""
    sections: dict[str, Any] = json.loads(config.model_dump_json())
    return {key: value for key, value in sections.items() if key not in _OF_THE_PLACE}
