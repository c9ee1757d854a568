"""The descent of an experiment's runs over its generations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from game_rl.experiments.records import CopyRecord, GenerationRecord, Value, parents_of


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


def descent(records: Sequence[GenerationRecord]) -> tuple[Branch, ...]:
    """Return a tree for each run that began without a parent."""
    copies = {copy.folder: copy for record in records for copy in record.copies}
    parents = parents_of(records)
    trained: dict[str, list[tuple[int, int]]] = {}  # generations and timesteps played in them
    for record in records:
        for member in record.members:
            part = record.generation, member.played_timesteps or 0
            trained.setdefault(member.folder, []).append(part)

    def branch(folder: str) -> Branch:
        children = [child for child, parent in parents.items() if parent == folder]
        generations, played = zip(*trained[folder], strict=True)
        return Branch(
            folder,
            copies.get(folder),
            (generations[0], generations[-1]),
            sum(played),
            tuple(branch(child) for child in children if child in trained),
        )

    return tuple(branch(folder) for folder in trained if folder not in parents)


def descent_json(branch: Branch) -> dict[str, Any]:
    copied = branch.copied
    return {
        "run": branch.folder,
        "generations": list(branch.generations),
        "played_timesteps": branch.played_timesteps,
        "copied": None if copied is None else copied.model_dump(mode="json"),
        "children": [descent_json(child) for child in branch.children],
    }


def changes_words(copy: CopyRecord) -> str:
    """List what mutated, such as `learning_rate 0.0005 to 0.00061`."""
    words = [
        f"{key.rpartition('.')[2]} {_words(copy.old_values[key])} to {_words(value)}"
        for key, value in copy.new_values.items()
        if copy.reason != "injected"
    ]
    noise = [f"weights by {copy.weight_noise:g}"] if copy.weight_noise else []
    return ", ".join([*words, *noise])


def _words(value: Value) -> str:
    if isinstance(value, dict):
        return f"{{{value['start']:.3g}, {value['end']:.3g}}}"
    return f"{value:.3g}"
