"""The descent of an experiment's runs as a tree in the terminal."""

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from game_rl.config.experiments.experiment import STAGES
from game_rl.experiments.descent import Branch, changes_words


def descent_tree(
    name: str, branches: Sequence[Branch], *, kind: str, frame_skip: int, waited_frames: int = 0
) -> Tree:
    """Return the tree for people.

    Args:
        waited_frames: frames of all runs beyond `frame_skip` in each timestep.
    """
    tree = Tree(Text(name))
    for branch in branches:
        _grow(tree, branch, STAGES[kind])
    if played := sum(map(_played, branches)):
        frames = played * frame_skip + waited_frames
        tree.add(Text(f"total played: {played:,} timesteps, {frames:,} frames"))
    return tree


def _played(branch: Branch) -> int:
    return branch.played_timesteps + sum(map(_played, branch.children))


def _grow(tree: Tree, branch: Branch, stage: str) -> None:
    first, last = branch.generations
    text = f"{branch.folder}  {stage} {first}"
    if last != first:
        text = f"{branch.folder}  {stage}s {first}-{last}"
    if branch.played_timesteps:
        text += f"  {branch.played_timesteps:,} timesteps"
    if branch.copied is not None:
        text += "  the learner's weights" if branch.copied.reason == "injected" else ""
    if branch.copied is not None and changes_words(branch.copied):
        text += f"  {changes_words(branch.copied)}"
    grown = tree.add(Text(text))
    for child in branch.children:
        _grow(grown, child, stage)
