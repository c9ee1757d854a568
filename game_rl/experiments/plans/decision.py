"""The decision after a generation: from its results to its record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.errors import NobodyLeftError
from game_rl.experiments.experiment_dir import folder_of
from game_rl.experiments.plans.evolution import Copy, Scored, mutated, ranked, select
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    LearnerRecord,
    Member,
    TrainedMember,
    Value,
    fitness_of,
)
from game_rl.jobs.results import StretchResult
from game_rl.seeds import seed_for


def first_members(config: PopulationConfig, values: Mapping[str, Value]) -> tuple[Member, ...]:
    """Return the members of the first generation.

    Control members have the values of the config, the others mutated ones.
    """
    rng = np.random.default_rng(seed_for(config.seed, "first_members"))
    members = []
    for number in range(config.members):
        own = dict(values)
        drawn = mutated(values, config.mutation.values, rng)
        if number >= config.control:  # a control member draws, and keeps its own
            own = drawn
        members.append(Member(number=number, folder=folder_of(number), values=own))
    return tuple(members)


def fitness_seed(seed: int, generation: int) -> int:
    """Return the seed of the episodes that all members play at the end of a generation.

    Args:
        seed: the experiment's.
    """
    return seed_for(seed, f"fitness/{generation}")


@dataclass(frozen=True)
class Trained:
    """The members that have trained in a generation.

    Attributes:
        before: the record of the generation before, or None for the first generation.
    """

    before: GenerationRecord | None
    members: tuple[TrainedMember, ...]


def trained(
    metric: str,
    members: Sequence[Member],
    results: Mapping[int, StretchResult],
    before: GenerationRecord | None,
) -> Trained:
    """Combine members with the results of their stretches, as a record states them."""
    began_at = timesteps_before(before)
    found = []
    for member in members:
        result = results[member.number]
        played = result.played
        found.append(
            TrainedMember(
                number=member.number,
                folder=member.folder,
                values=member.values,
                timesteps=result.timesteps,
                checkpoint=result.checkpoint,
                weights_sha256=result.weights_sha256,
                fitness=None if played is None else fitness_of(played, metric),
                failure=result.text or result.failure,
                counts_from=member.counts_from,
                played_timesteps=result.timesteps - began_at.get(member.folder, 0),
            )
        )
    return Trained(before, tuple(found))


def timesteps_before(before: GenerationRecord | None) -> dict[str, int]:
    """Return, by run folder, the timestep at which a run begins the next generation.

    A run that is missing begins at 0.
    """
    if before is None:
        return {}
    began_at = {member.folder: member.timesteps for member in before.members}
    for copy in before.copies:
        began_at[copy.folder] = int(copy.parent_checkpoint) if copy.counters == "keep" else 0
    return began_at


def timesteps_of_all(found: Trained) -> int | None:
    """Return the timesteps that all runs, the learner's included, have played so far.

    None if the record of the generation before does not count them.
    """
    before = 0 if found.before is None else found.before.timesteps_of_all
    if before is None:
        return None
    return before + sum(member.played_timesteps or 0 for member in found.members)


def decide(config: PopulationConfig, generation: int, found: Trained) -> GenerationRecord:
    """Rank the members and select which are copied over; none are after the last generation.

    Args:
        found: the members, without a learner, which takes no part in selection.

    Raises:
        NobodyLeftError: no member has finite weights.
    """
    scored = [scored_member(member) for member in found.members]
    if best_trained(found.members) is None:
        raise NobodyLeftError(all_non_finite(generation))
    rng = np.random.default_rng(seed_for(config.seed, f"decision/{generation}"))
    copies: list[Copy] = []
    if generation < config.generations:
        copies = select(scored, config.selection, control=config.control, rng=rng)
    return GenerationRecord(
        generation=generation,
        timesteps=generation * config.timesteps_per_generation,
        seed=fitness_seed(config.seed, generation),
        ranking=tuple(member.number for member in ranked(scored)),
        members=found.members,
        copies=tuple(_copied(config, generation, found.members, copy, rng) for copy in copies),
        timesteps_of_all=timesteps_of_all(found),
    )


def all_non_finite(generation: int) -> str:
    """Return the message of the NobodyLeftError for a generation without finite weights."""
    return (
        f"the weights of all members became non-finite in generation {generation}; begin another "
        "population with a lower algorithm.learning_rate of member"
    )


def members_after(record: GenerationRecord) -> tuple[Member, ...]:
    """Return the members of the next generation, without a learner."""
    copies = {copy.number: copy for copy in record.copies}
    learner = None if record.learner is None else record.learner.number
    by_number = {member.number: member for member in record.members}
    return tuple(
        _copy_of(copies[m.number], by_number, record.generation)
        if m.number in copies
        else Member(number=m.number, folder=m.folder, values=m.values, counts_from=m.counts_from)
        for m in record.members
        if m.number != learner
    )


def _copy_of(copied: CopyRecord, by_number: Mapping[int, TrainedMember], generation: int) -> Member:
    is_new = copied.counters == "new"
    return Member(
        number=copied.number,
        folder=copied.folder,
        values=copied.new_values,
        counts_from=generation if is_new else by_number[copied.parent].counts_from,
    )


def best_trained(members: Sequence[TrainedMember]) -> TrainedMember | None:
    """Return the best member, or None if no member has finite weights."""
    first = ranked([scored_member(member) for member in members])[0]
    if first.fitness is None:
        return None
    return next(member for member in members if member.number == first.number)


def scored_member(member: TrainedMember) -> Scored:
    """Return the figures of a member that selection compares."""
    fitness = member.fitness
    if fitness is None:
        return Scored(member.number, None, 0.0)
    return Scored(member.number, fitness.value, fitness.mean_reward)


def _copied(
    config: PopulationConfig,
    generation: int,
    trained: Sequence[TrainedMember],
    copy: Copy,
    rng: np.random.Generator,
) -> CopyRecord:
    by_number = {member.number: member for member in trained}
    parent, child = by_number[copy.parent], by_number[copy.number]
    assert parent.checkpoint is not None
    # a control member that became non-finite keeps its own values, with its parent's weights
    new, weights = mutated(parent.values, config.mutation.values, rng), config.mutation.weights
    if copy.number < config.control:
        new, weights = child.values, None
    return CopyRecord(
        number=copy.number,
        folder=folder_of(copy.number, copied_after=generation),
        parent=copy.parent,
        parent_folder=parent.folder,
        parent_checkpoint=parent.checkpoint,
        reason="worse" if child.fitness is not None else "non_finite",
        seed=member_seed(config, copy.number, copied_after=generation),
        old_values=parent.values,
        new_values=new,
        weight_noise=0.0 if weights is None else weights.sigma,
    )


def member_seed(config: PopulationConfig, number: int, *, copied_after: int = 0) -> int:
    """Return the seed of a member's own random numbers; a copy's differs from its parent's."""
    return seed_for(config.seed, f"member/{folder_of(number)}/{copied_after}")


def is_injected(config: PopulationConfig, generation: int) -> bool:
    """Whether the learner replaces a member after this generation; not after the last one."""
    return generation % config.inject_every == 0 and generation < config.generations


def replaced(config: PopulationConfig, record: GenerationRecord) -> TrainedMember | None:
    """Return the member that the learner replaces, or None if there is none.

    It is the worst member that is not a control member, whether selection copies it over or not,
    and never the best of all.

    Args:
        record: without the learner.
    """
    numbers = [number for number in record.ranking[1:] if number >= config.control]
    return next((m for m in record.members if numbers and m.number == numbers[-1]), None)


def with_learner(
    record: GenerationRecord, found: Trained, learner: LearnerRecord
) -> GenerationRecord:
    """Add the learner to a record of the members alone.

    Args:
        found: the members and the learner.
    """
    scored = [scored_member(member) for member in found.members]
    changes = {
        "ranking": tuple(member.number for member in ranked(scored)),
        "members": found.members,
        "learner": learner,
        "timesteps_of_all": timesteps_of_all(found),
    }
    return record.model_copy(update=changes)


def with_injected(record: GenerationRecord, injected: CopyRecord) -> GenerationRecord:
    """Add the injected copy to a record, in place of the member's copy by selection, if any."""
    others = [copy for copy in record.copies if copy.number != injected.number]
    copies = sorted([*others, injected], key=lambda copy: copy.number)
    return record.model_copy(update={"copies": tuple(copies)})


def injection(
    config: PopulationConfig,
    generation: int,
    child: TrainedMember,
    parent: TrainedMember,
) -> CopyRecord:
    """Return the copy that gives `child` the learner's weights; it keeps its own values.

    Args:
        parent: the learner, whose weights are finite.
    """
    assert parent.checkpoint is not None
    return CopyRecord(
        number=child.number,
        folder=folder_of(child.number, copied_after=generation),
        parent=parent.number,
        parent_folder=parent.folder,
        parent_checkpoint=parent.checkpoint,
        reason="injected",
        seed=member_seed(config, child.number, copied_after=generation),
        old_values=child.values,
        new_values=child.values,
        counters="new",
    )


def trained_on_folder(generation: int) -> str:
    """Return the name of its run directory; `generation` is the last one."""
    return f"trained_on.g{generation:04d}"


def counted_from(best: TrainedMember, found: Trained, folder: str) -> Trained:
    """Count of the run in this folder only what it has played since it was forked.

    Args:
        best: the member that it was forked from.
    """
    assert best.checkpoint is not None
    began_at = int(best.checkpoint)
    members = tuple(
        member.model_copy(update={"played_timesteps": member.timesteps - began_at})
        if member.folder == folder
        else member
        for member in found.members
    )
    return replace(found, members=members)


def trained_on_record(number: int, best: TrainedMember) -> LearnerRecord:
    """Return the record of the run's origin, the best member."""
    return LearnerRecord(
        number=number,
        parent_folder=best.folder,
        parent_checkpoint=best.checkpoint,
        teacher=None,
    )
