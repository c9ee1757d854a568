"""The descent of an experiment's runs over its generations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, read_record


@dataclass(frozen=True)
class Branch:
    """A run of the experiment, with its descendants.

    Attributes:
        copied: the copy that made it; None if it began without a parent or is a learner's run.
        generations: the first and the last one in which it trained.
        played_timesteps: timesteps that it has played itself, without its ancestors' and without
            generations whose record does not count them.
        children: runs that began from it, in the order of generations.
    """

    folder: str
    copied: CopyRecord | None
    generations: tuple[int, int]
    played_timesteps: int
    children: tuple["Branch", ...]


@dataclass
class _Life:
    """The generations in which a run has trained, and the timesteps that it has played in them."""

    first: int
    last: int = 0
    played_timesteps: int = 0


def read_records(folder: ExperimentDir) -> list[GenerationRecord]:
    """Read all records that exist, in the order of generations."""
    found = (
        read_record(folder.generation(number).record, GenerationRecord)
        for number in folder.kept_generations()
    )
    return [record for record in found if record is not None]


def descent(records: Sequence[GenerationRecord]) -> tuple[Branch, ...]:
    """Return a tree for each run that began without a parent."""
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
    """Yield the learner's folder and its parent's, if it has a parent."""
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
