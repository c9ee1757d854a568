"""The members of a generation once they have trained: results, ranking, timesteps."""

from collections.abc import Mapping, Sequence

from game_rl.experiments.jobs.results import StretchResult
from game_rl.experiments.plans.evolution import Scored, ranked
from game_rl.experiments.records import (
    GenerationRecord,
    Member,
    TrainedMember,
    fitness_of,
)
from game_rl.seeds import seed_for


def fitness_seed(seed: int, generation: int) -> int:
    """Return the seed of the episodes that all members play at the end of a generation.

    Args:
        seed: the experiment's.
    """
    return seed_for(seed, f"fitness/{generation}")


def trained_members(
    metric: str,
    members: Sequence[Member],
    results: Mapping[int, StretchResult],
    before: GenerationRecord | None,
) -> tuple[TrainedMember, ...]:
    """Combine members with the results of their stretches, as a record states them.

    Args:
        before: the record of the generation before, or None for the first generation.
    """
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
                waited_frames=result.waited_frames,
                checkpoint=result.checkpoint,
                weights_sha256=result.weights_sha256,
                fitness=None if played is None else fitness_of(played, metric),
                failure=result.text or result.failure,
                counts_from=member.counts_from,
                played_timesteps=result.timesteps - began_at.get(member.folder, 0),
            )
        )
    return tuple(found)


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


def waited_before(before: GenerationRecord | None) -> dict[str, int]:
    """Return, by run folder, the waited frames with which a run begins the next generation."""
    if before is None:
        return {}
    began_at = {member.folder: member.waited_frames for member in before.members}
    for copy in before.copies:
        keeps = copy.counters == "keep"
        began_at[copy.folder] = began_at.get(copy.parent_folder, 0) if keeps else 0
    return began_at


def waited_frames_of_all(
    before: GenerationRecord | None, members: Sequence[TrainedMember], forked: Mapping[str, int]
) -> int:
    """Return the frames beyond `frame_skip` that all runs have played so far.

    Args:
        forked: waited frames with which runs of this generation have begun that are forks of
            another one of it, by folder.
    """
    began_at = {**waited_before(before), **forked}
    counted = 0 if before is None else before.waited_frames_of_all
    return counted + sum(
        max(0, member.waited_frames - began_at.get(member.folder, 0)) for member in members
    )


def timesteps_of_all(
    before: GenerationRecord | None, members: Sequence[TrainedMember]
) -> int | None:
    """Return the timesteps that all runs, the learner's included, have played so far.

    None if the record of the generation before does not count them.
    """
    counted = 0 if before is None else before.timesteps_of_all
    if counted is None:
        return None
    return counted + sum(member.played_timesteps or 0 for member in members)


def ranking_of(members: Sequence[TrainedMember]) -> tuple[int, ...]:
    """Return the numbers of the members, the best first."""
    return tuple(member.number for member in ranked([scored_member(each) for each in members]))


def scored_member(member: TrainedMember) -> Scored:
    """Return the figures of a member that selection compares."""
    fitness = member.fitness
    if fitness is None:
        return Scored(member.number, None, 0.0)
    return Scored(member.number, fitness.value, fitness.mean_reward)
