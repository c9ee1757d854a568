"""The best member of a population, which trains on alone after the last generation."""

from collections.abc import Sequence

from game_rl.experiments.decision import scored_member, trained_member
from game_rl.experiments.plan import Results
from game_rl.experiments.records import GenerationRecord, LearnerRecord, Member, TrainedMember
from game_rl.experiments.selection import ranked


def trained_on_folder(generation: int) -> str:
    """The name of its run directory, of a generation that is the last."""
    return f"trained_on.g{generation:04d}"


def best_of(members: Sequence[Member], results: Results, metric: str) -> TrainedMember | None:
    """By fitness, ties as always; None: no member has finite weights."""
    trained = {m.number: trained_member(metric, m, results[m.number]) for m in members}
    best = trained[ranked([scored_member(member) for member in trained.values()])[0].number]
    return best if best.fitness is not None else None


def recorded(record: GenerationRecord, best: TrainedMember | None) -> GenerationRecord:
    """With where the last of its members came from, if there is one beside the population's."""
    names = {member.folder: member.number for member in record.members}
    number = names.get(trained_on_folder(record.generation))
    if number is None or best is None:
        return record
    learner = LearnerRecord(
        number=number,
        parent_folder=best.folder,
        parent_checkpoint=best.checkpoint,
        teacher=None,
    )
    return record.model_copy(update={"learner": learner})
