"""The learner among a population's members: its place in the ranking, and which it replaces."""

from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.experiments.experiment_dir import folder_of
from game_rl.experiments.plans.decision import (
    Trained,
    member_seed,
    scored_member,
    timesteps_of_all,
)
from game_rl.experiments.plans.selection import ranked
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    LearnerRecord,
    TrainedMember,
)


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
