"""The rules by which members continue as copies: selection, injection of a learner, cloning."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from game_rl.config.algorithms import ExplorationConfig
from game_rl.config.experiments.experiment import Experiment, ExperimentConfig
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.experiments.experiment_dir import folder_of
from game_rl.experiments.plans.decision import ranking_of, scored_member
from game_rl.experiments.plans.evolution import clones, mutated, select, values_of
from game_rl.experiments.plans.member_runs import (
    counting_anew,
    exploration_from,
    member_seed,
    sections_of,
)
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    Member,
    TrainedMember,
    Value,
)
from game_rl.seeds import seed_for

_EXPLORING_ROUNDS = 0.5


def first_members(config: ExperimentConfig, run: RunConfig) -> tuple[Member, ...]:
    """Return the members of the first generation, without a learner.

    Control members have the values of the config, the others mutated ones. A mixture mutates
    nothing.
    """
    drawn: list[dict[str, Value]] = [{} for _ in range(config.members)]
    if isinstance(config, PopulationConfig):
        rng = np.random.default_rng(seed_for(config.seed, "first_members"))
        values = values_of(run.model_dump(mode="json"), config.mutation.values)
        drawn = [mutated(values, config.mutation.values, rng) for _ in drawn]
        drawn[: config.control] = [dict(values) for _ in range(config.control)]
    return tuple(Member(number=n, folder=folder_of(n), values=own) for n, own in enumerate(drawn))


def changes_of(values: Mapping[str, Value]) -> dict[Key, Any]:
    """Return the values of a member by their keys in a run's config."""
    return {tuple(key.split(".")): value for key, value in values.items()}


def copies_after(
    config: ExperimentConfig,
    generation: int,
    members: Sequence[TrainedMember],
    learner: TrainedMember | None,
) -> tuple[CopyRecord, ...]:
    """Return the copies that replace members after a generation, in the order of their numbers.

    Args:
        members: the members without the learner, at least one of them with finite weights.
    """
    if isinstance(config, MixtureConfig):
        assert learner is not None
        return _cloned(config, generation, members, learner)
    copies = _selected(config, generation, members)
    if learner is not None and generation % config.inject_every == 0:
        child = _replaced(config, members)
        if child is not None and learner.checkpoint is not None:
            values = child.values
            copies[child.number] = _copy_record(
                config, generation, child, learner, "injected", values, values, counters="new"
            )
    return tuple(copies[number] for number in sorted(copies))


def _copy_record(
    config: ExperimentConfig,
    generation: int,
    child: TrainedMember,
    parent: TrainedMember,
    reason: Literal["worse", "non_finite", "always", "injected"],
    old: Mapping[str, Value],
    new: Mapping[str, Value],
    *,
    counters: Literal["keep", "new"] = "keep",
    weight_noise: float = 0.0,
) -> CopyRecord:
    """Return the copy of `parent` that replaces `child` after a generation."""
    assert parent.checkpoint is not None
    folder = folder_of(child.number, copied_after=generation)
    return CopyRecord(
        number=child.number,
        folder=folder,
        parent=parent.number,
        parent_folder=parent.folder,
        parent_checkpoint=parent.checkpoint,
        reason=reason,
        seed=member_seed(config, folder),
        old_values=dict(old),
        new_values=dict(new),
        counters=counters,
        weight_noise=weight_noise,
    )


def _selected(
    config: PopulationConfig, generation: int, members: Sequence[TrainedMember]
) -> dict[int, CopyRecord]:
    """Return the copies by selection, mutated, by the number of the member that is replaced."""
    rng = np.random.default_rng(seed_for(config.seed, f"decision/{generation}"))
    scored = [scored_member(member) for member in members]
    copies = {}
    noise = config.mutation.weights
    for copy in select(scored, config.selection, control=config.control, rng=rng):
        child = members[copy.number]
        parent = members[copy.parent]
        # a control member that became non-finite keeps its own values, with its parent's weights
        is_control = copy.number < config.control
        new = mutated(parent.values, config.mutation.values, rng)
        copies[copy.number] = _copy_record(
            config,
            generation,
            child,
            parent,
            "worse" if child.fitness is not None else "non_finite",
            parent.values,
            child.values if is_control else new,
            weight_noise=0.0 if noise is None or is_control else noise.sigma,
        )
    return copies


def _replaced(config: PopulationConfig, members: Sequence[TrainedMember]) -> TrainedMember | None:
    """Return the member that the learner replaces, or None if there is none.

    It is the worst member that is not a control member, whether selection copies it over or not,
    and never the best of all.
    """
    numbers = [number for number in ranking_of(members)[1:] if number >= config.control]
    return members[numbers[-1]] if numbers else None


def _cloned(
    config: MixtureConfig,
    generation: int,
    members: Sequence[TrainedMember],
    learner: TrainedMember,
) -> tuple[CopyRecord, ...]:
    """Return the clones of the learner, or of the best member if the learner is non-finite."""
    scored = [scored_member(member) for member in members]
    everyone = (*members, learner)
    asked: Literal["worse", "always"] = "worse" if config.clone.only_if_better else "always"
    copies = []
    for copy in clones(scored, scored_member(learner), config.clone):
        child = members[copy.number]
        parent = everyone[copy.parent]
        reason = asked if child.fitness is not None else "non_finite"
        copies.append(
            _copy_record(config, generation, child, parent, reason, {}, {}, counters="new")
        )
    return tuple(copies)


def members_after(record: GenerationRecord) -> tuple[Member, ...]:
    """Return the members of the next generation, without a learner."""
    counts_from = {member.number: member.counts_from for member in record.members}
    members = {
        m.number: Member(
            number=m.number, folder=m.folder, values=m.values, counts_from=m.counts_from
        )
        for m in record.members_alone
    }
    for copied in record.copies:
        is_new = copied.counters == "new"
        members[copied.number] = Member(
            number=copied.number,
            folder=copied.folder,
            values=copied.new_values,
            counts_from=record.generation if is_new else counts_from[copied.parent],
        )
    return tuple(members.values())


def fork_of(
    experiment: Experiment, record: GenerationRecord, copied: CopyRecord
) -> tuple[dict[str, object], Mapping[str, object]]:
    """Return the section `fork` of a copy's run, and the values in which its config differs."""
    config = experiment.config
    counters = copied.counters
    if isinstance(config, MixtureConfig):
        fork: dict[str, object] = {"optimiser": config.clone.optimiser, "counters": counters}
        return fork, sections_of(_clone_config(config, experiment.run, record.generation))
    fork = {"weight_noise": copied.weight_noise, "counters": counters}
    if counters == "new":
        own = _config(config, experiment.run, copied.new_values, record.generation)
        return fork | {"optimiser": "new"}, sections_of(own)
    counts_from = next(m.counts_from for m in record.members if m.number == copied.parent)
    own = _config(config, experiment.run, copied.new_values, counts_from)
    return fork, values_of(own.model_dump(mode="json"), config.mutation.values)


def _config(
    config: PopulationConfig, run: RunConfig, values: Mapping[str, Value], counts_from: int
) -> RunConfig:
    """Return the config of a run that begins at timestep 0, after generation `counts_from`.

    The values of a schedule describe the member's whole training; the run gets what is left.
    """
    run = with_changed(run, changes_of(values))
    if not counts_from:
        return run
    at = counts_from * config.timesteps_per_generation
    exploration = run.algorithm.exploration
    assert exploration is not None  # the config refuses ppo, with a learner
    total = run.total_timesteps
    exploration = exploration_from(exploration, at=at, total_timesteps=total)
    return counting_anew(run, at=at, exploration=exploration)


def _clone_config(config: MixtureConfig, run: RunConfig, generation: int) -> RunConfig:
    """Return the config of a clone after a round, with the clone's own exploration."""
    end = run.algorithm.model_dump(mode="json")["exploration"]["end"]
    exploration = ExplorationConfig(
        start=max(config.clone.exploration, end),
        end=end,
        fraction=_EXPLORING_ROUNDS / (config.rounds - generation),
    )
    at = generation * config.timesteps_per_round
    return counting_anew(run, at=at, exploration=exploration)
