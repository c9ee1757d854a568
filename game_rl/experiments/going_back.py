"""Going back to an earlier generation's decision; what came later is set aside, not deleted."""

import itertools
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.experiments.curves import remove_curves
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.kept_checkpoints import has_checkpoints, link_checkpoint
from game_rl.experiments.records import (
    ExperimentState,
    GenerationRecord,
    Member,
    TrainedMember,
    read_record,
    write_record,
)


def go_back(folder: ExperimentDir, generation: int) -> Path:
    """Restore the population as it was when the record of `generation` was written.

    If the process is killed meanwhile, the next controller completes it: see `finish_going_back`.

    Returns:
        The folder that the later records and members were moved to.

    Raises:
        UsageError: the checkpoints of that generation are not kept.
    """
    record = read_record(folder.generation(generation).record, GenerationRecord)
    if record is None or not has_checkpoints(folder, record):
        raise UsageError(_not_kept(folder, generation))
    apprentice = None if record.learner is None else record.learner.number
    before = tuple(
        Member(number=m.number, folder=m.folder, values=m.values)
        for m in record.members
        if m.number != apprentice
    )
    state = ExperimentState(generation=generation - 1, members=before, going_back_to=generation)
    write_record(folder.state, state)
    return _finish(folder, state, record)


def finish_going_back(folder: ExperimentDir) -> None:
    """Complete a `go_back` in which a controller was killed, if there is one."""
    state = read_record(folder.state, ExperimentState)
    if state is not None and state.going_back_to is not None:
        record = read_record(folder.generation(state.going_back_to).record, GenerationRecord)
        assert record is not None
        _finish(folder, state, record)


def _finish(folder: ExperimentDir, state: ExperimentState, record: GenerationRecord) -> Path:
    aside = new_folder(folder.superseded)
    for member in record.members:
        restore(folder, record.generation, member, aside)
    _move_later(folder, record, aside)
    remove_curves(folder.curves, after=record.generation)
    write_record(folder.state, state.model_copy(update={"going_back_to": None}))
    return aside


def _not_kept(folder: ExperimentDir, generation: int) -> str:
    kept = []
    for number in folder.kept_generations():
        record = read_record(folder.generation(number).record, GenerationRecord)
        if record is not None and has_checkpoints(folder, record):
            kept.append(str(number))
    found = f"it keeps {', '.join(kept)}" if kept else "it keeps none yet"
    return (
        f"{folder.root} does not keep the checkpoints of generation {generation}; {found} "
        "(keep_generations says which)"
    )


def restore(folder: ExperimentDir, generation: int, member: TrainedMember, aside: Path) -> None:
    """Make the checkpoint at the end of a generation the member's newest; set later ones aside.

    A member whose weights were not finite then has no such checkpoint, and stays as it is.
    """
    if member.checkpoint is None:
        return
    run_dir = folder.member(member.folder)
    kept = folder.generation(generation).checkpoint(member.number)
    link_checkpoint(kept, run_dir.checkpoints / member.checkpoint)
    for path in run_dir.checkpoints_newest_first():
        if int(path.name) > int(member.checkpoint):
            move_into(aside / "members" / member.folder / "checkpoints", path)


def _move_later(folder: ExperimentDir, record: GenerationRecord, aside: Path) -> None:
    """Set aside later generations, copies made after this one or later, and the champion."""
    generation, stay = record.generation, {member.folder for member in record.members}
    for number in folder.generations.iterdir():
        if number.name.isdecimal() and int(number.name) > generation:
            move_into(aside / "generations", number)
    for path in folder.members.iterdir():
        if (copied_after(path.name) or 0) >= generation and path.name not in stay:
            move_into(aside / "members" / "copies", path)
    for path in (folder.champion, folder.champion_record, folder.validation, folder.errands):
        if path.exists():
            move_into(aside, path)


def move_into(folder: Path, path: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path.rename(folder / path.name)


def new_folder(parent: Path) -> Path:
    """Make the next numbered folder in `parent`, and return it."""
    parent.mkdir(exist_ok=True)
    paths = (parent / f"{number:03d}" for number in itertools.count())
    free = next(path for path in paths if not path.exists())
    free.mkdir()
    return free
