"""The status of an experiment and the descent of its runs, for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from game_rl.experiments.descent import Branch
from game_rl.experiments.stages import STAGES
from game_rl.experiments.status.run_tail import FollowedStatus
from game_rl.experiments.status.status import ExperimentStatus
from game_rl.experiments.tables import changes_words, filled_table, fitness_cells


def status_table(status: ExperimentStatus) -> RenderableType:
    stage = f"{STAGES[status.kind]} {status.generation}/{status.generations}"
    stage = "live" if status.is_live else stage
    line = f"{status.path}: {status.state}, {stage}"
    if status.timesteps_of_all is not None:
        line += f", {status.timesteps_of_all:,} timesteps of all runs"
    if status.frames_of_all is not None:
        line += f" ({status.frames_of_all:,} frames)"
    rows = [
        (
            member.folder,
            f"{member.timesteps:,} of {member.until:,}",
            "" if member.timesteps_per_s is None else f"{member.timesteps_per_s:,.0f}",
            *(("", "") if member.last is None else fitness_cells(member.last)),
            "done" if member.has_ended_stretch else "",
        )
        for member in status.members
    ]
    names = ("member", "timesteps", "timesteps/s", "last fitness", "reward", "now")
    table = filled_table(names, rows, texts=["now"])
    followed = [
        f"{member.folder} follows the Lake: {', '.join(_followed_words(member.followed))}"
        for member in status.members
        if member.followed is not None
    ]
    above = [Text(text) for text in (line, status.text, status.safe) if text]
    return Group(*above, table, *map(Text, [*followed, *_mixing_lines(status)]))


def _mixing_lines(status: ExperimentStatus) -> Iterator[str]:
    if status.drawn is not None and status.drawn.words:
        yield status.drawn.words
    if status.differences is not None and status.differences.words:
        when = (
            "" if status.is_live else f" of {STAGES[status.kind]} {status.differences.generation}"
        )
        yield f"at the end{when}, {status.differences.words}"


def _followed_words(followed: FollowedStatus) -> Iterator[str]:
    yield f"{followed.rows:,} rows seen"
    if followed.drawn:
        yield f"{followed.own_drawn / followed.drawn:.1%} of {followed.drawn:,} drawn are its own"
    if followed.newest_age_s is not None:
        yield f"the newest {followed.newest_age_s:.1f} s old (median)"


def descent_tree(name: str, branches: Sequence[Branch], *, kind: str, frame_skip: int) -> Tree:
    tree = Tree(Text(name))
    for branch in branches:
        _grow(tree, branch, STAGES[kind])
    if played := sum(map(_played, branches)):
        frames = played * frame_skip
        tree.add(Text(f"all that was played: {played:,} timesteps, {frames:,} frames"))
    return tree


def _played(branch: Branch) -> int:
    return branch.played_timesteps + sum(map(_played, branch.children))


def descent_json(branch: Branch) -> dict[str, Any]:
    copied = branch.copied
    return {
        "run": branch.folder,
        "generations": list(branch.generations),
        "played_timesteps": branch.played_timesteps,
        "copied": None if copied is None else copied.model_dump(mode="json"),
        "children": [descent_json(child) for child in branch.children],
    }


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
