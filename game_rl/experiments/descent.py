"""Who descends from whom in a population, generation by generation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, read_record


@dataclass(frozen=True)
class Branch:
    """A run of the population.

    Attributes:
        copied: how it came about; None: it was there from the beginning, or is a learner's.
        generations: in which it was a member, first and last.
        played_timesteps: that it has played itself, as far as they were counted.
        children: runs that began from it, in the order of generations.
    """

    folder: str
    copied: CopyRecord | None
    generations: tuple[int, int]
    played_timesteps: int
    children: tuple["Branch", ...]


@dataclass
class _Life:
    """Generations in which a run has trained, and what it has played in them."""

    first: int
    last: int = 0
    played_timesteps: int = 0


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
    parents = {folder: copy.parent_folder for folder, copy in copies.items()}
    parents |= {folder: parent for record in records for folder, parent in _learner_of(record)}
    lives: dict[str, _Life] = {}
    for record in records:
        for member in record.members:
            life = lives.setdefault(member.folder, _Life(record.generation))
            life.last = record.generation
            life.played_timesteps += member.played_timesteps or 0
    roots = [folder for folder in lives if folder not in parents]
    return tuple(_branch(folder, copies, parents, lives) for folder in roots)


def _learner_of(record: GenerationRecord) -> Iterator[tuple[str, str]]:
    """Its folder and that of the run that it began from, if there was one."""
    learner = record.learner
    if learner is not None and learner.parent_folder is not None:
        (member,) = (m for m in record.members if m.number == learner.number)
        yield member.folder, learner.parent_folder


def _branch(
    folder: str,
    copies: Mapping[str, CopyRecord],
    parents: Mapping[str, str],
    lives: Mapping[str, _Life],
) -> Branch:
    children, life = [child for child, parent in parents.items() if parent == folder], lives[folder]
    return Branch(
        folder,
        copies.get(folder),
        (life.first, life.last),
        life.played_timesteps,
        tuple(_branch(child, copies, parents, lives) for child in children if child in lives),
    )
