"""The learner of a population among its members: how good it is, and whom it replaces."""

from game_rl.config.experiments.population import PopulationConfig
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
    """The worst member that is no control, whatever selection makes of it; never the best one.

    Args:
        record: of the members alone.
    """
    numbers = [number for number in record.ranking[1:] if number >= config.control]
    return next((m for m in record.members if numbers and m.number == numbers[-1]), None)


def with_learner(
    record: GenerationRecord, found: Trained, learner: LearnerRecord
) -> GenerationRecord:
    """The record of the members alone, with the learner among those who have trained."""
    scored = [scored_member(member) for member in found.members]
    changes = {
        "ranking": tuple(member.number for member in ranked(scored)),
        "members": found.members,
        "learner": learner,
        "timesteps_of_all": timesteps_of_all(found),
    }
    return record.model_copy(update=changes)


def with_injected(record: GenerationRecord, injected: CopyRecord) -> GenerationRecord:
    """With this copy instead of what selection would have made of the member."""
    others = [copy for copy in record.copies if copy.number != injected.number]
    copies = sorted([*others, injected], key=lambda copy: copy.number)
    return record.model_copy(update={"copies": tuple(copies)})


def injection(
    config: PopulationConfig,
    generation: int,
    child: TrainedMember,
    parent: TrainedMember,
) -> CopyRecord:
    """`child` goes on with the learner's weights, and the values that it had.

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
