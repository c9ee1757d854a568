"""Generations that are kept: linked, forgotten, gone back to."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.errors import UsageError
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.records import (
    ExperimentState,
    GenerationRecord,
    Member,
    TrainedMember,
    read_record,
    read_records,
)
from game_rl.experiments.tensorboard_curves import remove_curves
from game_rl.files.durable_files import link_file, new_directory, remove_directory, write_saved
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake


def link_checkpoint(source: Path, target: Path) -> None:
    """Make the checkpoint `target` of hard links to the files of `source`, unless it exists.

    The files are copied if they cannot be linked, such as to another file system.
    """
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(target) as directory:
        for file in sorted(source.iterdir()):
            link_file(file, directory / file.name)


def keep_generation(folder: ExperimentDir, record: GenerationRecord) -> None:
    """Link the checkpoints of a generation's members next to its record."""
    generation = folder.generation(record.generation)
    for member in record.members:
        if member.checkpoint is not None:
            source = folder.member(member.folder).checkpoints / member.checkpoint
            link_checkpoint(source, generation.checkpoint(member.number))


def forget_generations(
    folder: ExperimentDir, keep: KeepGenerationsConfig, *, newest: int, present: set[str]
) -> None:
    """Delete checkpoints that are no longer needed.

    These are the linked ones of generations that are not kept, and all but the newest of each run;
    of runs that do not train next, the newest, too. Checkpoints from before a run's first timestep
    are deleted once it has a later one. Records, results, curves and events stay.

    Args:
        newest: the newest generation.
        present: folders of the runs that train next.
    """
    for number in folder.kept_generations():
        if not keep.keeps(number, newest=newest):
            for path in list(folder.generation(number).root.iterdir()):
                if path.is_dir() and path.name.isdecimal():
                    remove_directory(path)
    if not folder.members.is_dir():
        return
    for path in folder.members.iterdir():
        # the copy of a decision that is still being carried out
        is_underway = (copied_after(path.name) or 0) > newest
        if path.is_dir() and not path.name.startswith(".") and not is_underway:
            run_dir = folder.member(path.name)
            saved = run_dir.checkpoints_newest_first()
            before = run_dir.offline.checkpoints_newest_first() if saved else []
            trains_next = path.name in present
            for checkpoint in [*saved[trains_next:], *before]:
                remove_directory(checkpoint)
            _let_rows_go(folder, run_dir, trains_next=trains_next)


def _let_rows_go(folder: ExperimentDir, run_dir: RunDir, *, trains_next: bool) -> None:
    """Release the rows of a shared Lake that a run has pinned for its checkpoints.

    A learner that has trained reads no more rows, and a run that does not train next is never
    resumed.
    """
    if (folder.lake / "lake.json").is_file():
        lake = Lake.open(folder.lake)
        stream = run_dir.identity().id
        lake.keep_pins((), among=f"reads-{stream}.")
        if not trains_next:
            lake.keep_pins((), among=f"{stream}.")


def has_checkpoints(folder: ExperimentDir, record: GenerationRecord) -> bool:
    """Whether the population can go back to this generation."""
    generation = folder.generation(record.generation)
    return all(
        generation.checkpoint(m.number).is_dir() for m in record.members if m.checkpoint is not None
    )


def checkpoints_bytes(folder: ExperimentDir) -> int:
    """Return the size of all checkpoints of the experiment.

    A file with several hard links counts once.
    """
    manifests = folder.root.rglob("manifest.json")
    return _bytes_of(file for manifest in manifests for file in manifest.parent.iterdir())


def experiment_bytes(folder: ExperimentDir, *, but: Collection[Path] = ()) -> int:
    """Return the size of all files of the experiment; one with several hard links counts once.

    Args:
        but: folders whose files do not count.
    """
    files = (path for path in folder.root.rglob("*") if path.is_file())
    return _bytes_of(path for path in files if not any(map(path.is_relative_to, but)))


def superseded_bytes(folder: ExperimentDir, *, going_back_to: int | None = None) -> int:
    """Return the size of what was set aside and stays.

    Args:
        going_back_to: generation that `go_back` is going to be called with; what it will set aside
            counts, too.
    """
    aside = [folder.superseded]
    if going_back_to is not None:
        aside += _later_than(folder, going_back_to)
    return experiment_bytes(folder) - experiment_bytes(folder, but=aside)


def _later_than(folder: ExperimentDir, generation: int) -> Iterator[Path]:
    """Yield generations, copies and checkpoints from after a generation, and the champion."""
    yield from _of_the_end(folder)
    for number in folder.kept_generations():
        if number > generation:
            yield folder.generation(number).root
    for path in folder.members.iterdir():
        if (copied_after(path.name) or 0) >= generation:
            yield path
    record = read_record(folder.generation(generation).record, GenerationRecord)
    if record is None:
        return
    for member in record.members:
        for path in folder.member(member.folder).checkpoints_newest_first():
            if member.checkpoint is not None and int(path.name) > int(member.checkpoint):
                yield path


def _bytes_of(files: Iterable[Path]) -> int:
    seen: dict[tuple[int, int], int] = {}
    for file in files:
        status = file.stat()
        seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())


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
        records = (record for record in read_records(folder) if has_checkpoints(folder, record))
        kept = [str(record.generation) for record in records]
        found = f"it keeps {', '.join(kept)}" if kept else "it keeps none yet"
        raise UsageError(
            f"{folder.root} does not keep the checkpoints of generation {generation}; {found} "
            "(keep_generations says which)"
        )
    before = tuple(
        Member(number=m.number, folder=m.folder, values=m.values) for m in record.members_alone
    )
    state = ExperimentState(generation=generation - 1, members=before, going_back_to=generation)
    write_saved(folder.state, state)
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
    # later generations, copies made after this one or later, and the champion
    generation = record.generation
    stay = {member.folder for member in record.members}
    for number in folder.generations.iterdir():
        if number.name.isdecimal() and int(number.name) > generation:
            move_into(aside / "generations", number)
    for path in folder.members.iterdir():
        if (copied_after(path.name) or 0) >= generation and path.name not in stay:
            move_into(aside / "members" / "copies", path)
    for path in _of_the_end(folder):
        if path.exists():
            move_into(aside, path)
    remove_curves(folder.curves, after=record.generation)
    write_saved(folder.state, state.model_copy(update={"going_back_to": None}))
    return aside


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


def _of_the_end(folder: ExperimentDir) -> tuple[Path, ...]:
    return folder.champion, folder.champion_record, folder.validation, folder.staging


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
