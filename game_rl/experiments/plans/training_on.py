"""The best member of a population, which trains on alone after the last generation."""

from dataclasses import replace

from game_rl.experiments.plans.decision import Trained
from game_rl.experiments.records import LearnerRecord, TrainedMember


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
