"""The checkpoints that an experiment keeps, hard-linked next to each generation's record."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.records import GenerationRecord
from game_rl.lake.lake import Lake
from game_rl.run_dir import RunDir, new_directory, remove_directory, synced_file


def link_checkpoint(source: Path, target: Path) -> None:
    """Make the checkpoint `target` of hard links to the files of `source`, unless it exists.

    The files are copied if they cannot be linked, such as to another file system.
    """
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(target) as directory:
        for file in sorted(source.iterdir()):
            _link(file, directory / file.name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        with source.open("rb") as file, synced_file(target) as copy:
            shutil.copyfileobj(file, copy)


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
            for path in _checkpoints_of(folder.generation(number).root):
                remove_directory(path)
    for path in folder.members.iterdir() if folder.members.is_dir() else ():
        # the copy of a decision that is still being carried out
        is_underway = (copied_after(path.name) or 0) > newest
        if path.is_dir() and not path.name.startswith(".") and not is_underway:
            run_dir = folder.member(path.name)
            saved = run_dir.checkpoints_newest_first()
            before = run_dir.offline.checkpoints_newest_first() if saved else []
            for checkpoint in [*(saved[1:] if path.name in present else saved), *before]:
                remove_directory(checkpoint)
            _let_rows_go(folder, run_dir, is_present=path.name in present)


def _let_rows_go(folder: ExperimentDir, run_dir: RunDir, *, is_present: bool) -> None:
    """Release the rows of a shared Lake that a run has pinned for its checkpoints.

    A learner that has trained reads no more rows, and a run that does not train next is never
    resumed.
    """
    if (folder.lake / "lake.json").is_file():
        lake, stream = Lake.open(folder.lake), run_dir.identity().id
        lake.keep_pins((), among=f"reads-{stream}.")
        if not is_present:
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
    seen: dict[tuple[int, int], int] = {}
    for manifest in folder.root.rglob("manifest.json"):
        for file in manifest.parent.iterdir():
            status = file.stat()
            seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())


def _checkpoints_of(generation: Path) -> Iterator[Path]:
    return (path for path in list(generation.iterdir()) if path.is_dir() and path.name.isdecimal())
