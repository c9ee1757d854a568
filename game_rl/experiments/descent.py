"""Who descends from whom in a population, generation by generation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, read_record


@dataclass(frozen=True)
class Branch:
    """A run of the population.

    Attributes:
        copied: how it came about; None: it was there from the beginning.
        generations: in which it was a member, first and last.
        children: runs that were copied from it, in the order of generations.
    """

    folder: str
    copied: CopyRecord | None
    generations: tuple[int, int]
    children: tuple["Branch", ...]


def read_records(folder: ExperimentDir) -> list[GenerationRecord]:
    """All that there are, in their order."""
    found = (
        read_record(folder.generation(number).record, GenerationRecord)
        for number in folder.kept_generations()
    )
    return [record for record in found if record is not None]


def descent(records: Sequence[GenerationRecord]) -> tuple[Branch, ...]:
    """A tree for each run that was there from the beginning."""
    copies = {copy.folder: copy for record in records for copy in record.copies}
    lives: dict[str, tuple[int, int]] = {}
    for record in records:
        for member in record.members:
            first, _ = lives.get(member.folder, (record.generation, 0))
            lives[member.folder] = first, record.generation
    roots = [folder for folder in lives if folder not in copies]
    return tuple(_branch(folder, copies, lives) for folder in roots)


def _branch(
    folder: str, copies: Mapping[str, CopyRecord], lives: Mapping[str, tuple[int, int]]
) -> Branch:
    children = [copy.folder for copy in copies.values() if copy.parent_folder == folder]
    return Branch(
        folder,
        copies.get(folder),
        lives.get(folder, (0, 0)),
        tuple(_branch(child, copies, lives) for child in children if child in lives),
    )
