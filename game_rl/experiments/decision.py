"""What follows from the results of a generation: a pure function of them and named generators."""

from collections.abc import Mapping, Sequence

import numpy as np

from game_rl.config.population import PopulationConfig
from game_rl.errors import NobodyLeftError
from game_rl.experiments.experiment_dir import folder_of
from game_rl.experiments.fitness import fitness_of
from game_rl.experiments.mutation import Value, mutated
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    Member,
    TrainedMember,
)
from game_rl.experiments.selection import Copy, Scored, ranked, select
from game_rl.seeds import seed_for
from game_rl.training.stretch_result import StretchResult


def first_members(config: PopulationConfig, values: Mapping[str, Value]) -> tuple[Member, ...]:
    """Who trains first: the control members as the config says, the others mutated."""
    rng = np.random.default_rng(seed_for(config.seed, "first_members"))
    members = []
    for number in range(config.members):
        own = dict(values)
        drawn = mutated(values, config.mutation, rng)  # a control member draws, and keeps its own
        if number >= config.control:
            own = drawn
        members.append(Member(number=number, folder=folder_of(number), values=own))
    return tuple(members)


def fitness_seed(seed: int, generation: int) -> int:
    """Of the episodes of all members in a generation of an experiment with this seed."""
    return seed_for(seed, f"fitness/{generation}")


def decide(
    config: PopulationConfig,
    generation: int,
    members: Sequence[Member],
    results: Mapping[int, StretchResult],
) -> GenerationRecord:
    """Who is how good, and who goes on as a copy of whom; nobody after the last generation.

    Raises:
        NobodyLeftError: no member has finite weights.
    """
    metric = config.fitness.metric
    trained = [trained_member(metric, member, results[member.number]) for member in members]
    scored = [scored_member(member) for member in trained]
    if all(member.fitness is None for member in scored):
        raise NobodyLeftError(
            f"the weights of all members became non-finite in generation {generation}; go back "
            "with --generation and lower algorithm.learning_rate in a new population"
        )
    rng = np.random.default_rng(seed_for(config.seed, f"decision/{generation}"))
    copies: list[Copy] = []
    if generation < config.generations:
        copies = select(scored, config.selection, control=config.control, rng=rng)
    return GenerationRecord(
        generation=generation,
        timesteps=generation * config.timesteps_per_generation,
        seed=fitness_seed(config.seed, generation),
        ranking=tuple(member.number for member in ranked(scored)),
        members=tuple(trained),
        copies=tuple(_copied(config, generation, trained, copy, rng) for copy in copies),
    )


def members_after(record: GenerationRecord) -> tuple[Member, ...]:
    """Who trains next."""
    copies = {copy.number: copy for copy in record.copies}
    return tuple(
        Member(number=m.number, folder=m.folder, values=m.values)
        if m.number not in copies
        else Member(
            number=m.number,
            folder=copies[m.number].folder,
            values=copies[m.number].new_values,
        )
        for m in record.members
    )


def trained_member(metric: str, member: Member, result: StretchResult) -> TrainedMember:
    """What a record says of a member and the result of its stretch."""
    played = result.played
    return TrainedMember(
        number=member.number,
        folder=member.folder,
        values=member.values,
        timesteps=result.timesteps,
        checkpoint=result.checkpoint,
        weights_sha256=result.weights_sha256,
        fitness=None if played is None else fitness_of(played, metric),
        failure=result.text or result.failure,
    )


def scored_member(member: TrainedMember) -> Scored:
    """What is compared of it."""
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
    # a control member that broke goes on as the config says, with somebody's weights
    new = mutated(parent.values, config.mutation, rng)
    if copy.number < config.control:
        new = child.values
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
    )


def member_seed(config: PopulationConfig, number: int, *, copied_after: int = 0) -> int:
    """Of a member's own random numbers; a copy draws others than its parent."""
    return seed_for(config.seed, f"member/{folder_of(number)}/{copied_after}")
