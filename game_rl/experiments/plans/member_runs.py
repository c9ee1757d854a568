"""Ids, seeds and configs of the runs of members and learner."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from game_rl.config.algorithms import ExplorationConfig
from game_rl.config.experiments.learner_config import BEST_MEMBER
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.experiments.experiment_dir import copied_after
from game_rl.experiments.records import Member
from game_rl.schedules import Ramp
from game_rl.seeds import seed_for

_OF_THE_PLACE = ("run_dir", "fork")


def run_id(experiment: str, member: Member) -> str:
    """Return the unique id of a member's run.

    Streams of a Lake have these ids as names, and rows are drawn in the order of the names. So the
    ids ascend with the member's number and the generation, whatever the experiment's id is.
    """
    unique = sha256(f"{experiment}/{member.folder}".encode()).hexdigest()[:24]
    return f"{_id_beginning(member.number)}{copied_after(member.folder) or 0:04x}{unique}"


def agents_of(
    shares: Mapping[str, float] | None, *, members: int, best: int | None = None
) -> dict[str, float] | None:
    """Return the `learn_from.agents` of a learner, in which all runs of a member share its weight.

    Args:
        shares: weights by a member's number or `best_member`; other members have 1. None: every
            row is drawn alike.
        best: number of the member that `best_member` names.
    """
    if shares is None:
        return None
    weights = {number: shares.get(str(number), 1.0) for number in range(members)}
    if best is not None and BEST_MEMBER in shares:
        weights[best] = shares[BEST_MEMBER]
    return {_id_beginning(number): weight for number, weight in weights.items()}


def _id_beginning(number: int) -> str:
    return f"{number:04x}"


def run_seed(seed: int, folder: str) -> int:
    """Return the seed of a run's own random numbers, in an experiment with this seed."""
    return seed_for(seed, f"run/{folder}")


def sections_of(config: RunConfig) -> dict[str, Any]:
    """Return all that a fork takes over from this config, as JSON values."""
    sections: dict[str, Any] = json.loads(config.model_dump_json())
    return {key: value for key, value in sections.items() if key not in _OF_THE_PLACE}


def counting_anew(config: RunConfig, *, at: int, exploration: ExplorationConfig) -> RunConfig:
    """Return a member's config for a run that begins at its timestep `at` and counts from 0.

    The schedule of the learning rate continues where the member's is.
    """
    rate = config.algorithm.model_dump(mode="json")["learning_rate"]
    if isinstance(rate, dict):
        share = at / config.total_timesteps
        rate = rate | {"start": rate["start"] + (rate["end"] - rate["start"]) * share}
    changes: dict[Key, Any] = {
        ("total_timesteps",): config.total_timesteps - at,
        ("algorithm", "learning_rate"): rate,
        ("algorithm", "exploration"): exploration.model_dump(mode="json"),
    }
    return with_changed(config, changes)


def exploration_from(
    config: ExplorationConfig, *, at: int, total_timesteps: int
) -> ExplorationConfig:
    """Return the rest of a member's exploration, for a run that counts its timesteps from `at`.

    A restart that began before `at` is left out, even if it would not have ended yet.
    """
    ends_at = config.fraction * total_timesteps
    ramp, left = Ramp(config.start, config.end, max(1, round(ends_at))), total_timesteps - at
    restarts = (r for r in config.restarts if r.at >= at)
    return ExplorationConfig(
        start=ramp.at(at),
        end=config.end,
        fraction=(ends_at - at) / left if ends_at > at else 1.0,
        restarts=tuple(r.model_copy(update={"at": r.at - at}) for r in restarts),
    )
