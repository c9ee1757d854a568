"""A check that the rows of Lakes fit a run: the same game, played and observed the same way."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.games.definition import Game
from game_rl.lake.block_table import n_seen
from game_rl.lake.lake import Lake
from game_rl.lake.origin import disagreement, origin_of, read_origin
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import EvictedError, LakeView

_COMPARED = ("arrays", "frame_stack", "action_dtype", "action_shape")


@dataclass(frozen=True)
class LakeRows:
    """The size of some Lakes.

    Attributes:
        transitions: number of transitions in all streams.
        blocks: number of compressed blocks, each of which has a record in a view's table.
    """

    transitions: int = 0
    blocks: int = 0


def check_agreement(
    settings: LearnFromConfig,
    schema: LakeSchema,
    config: RunConfig,
    game: Game,
    tell: Callable[[str], None] = lambda _: None,
) -> LakeRows:
    """Check the Lakes of `settings` and return how much there is to learn from.

    Args:
        tell: is called with a sentence for each stream whose origin is not known.

    Raises:
        LakeError: a Lake is missing or empty, its rows differ from `schema`, or it is of another
            game.
    """
    ours, transitions, blocks = origin_of(config, game), 0, 0
    for path in settings.lakes:
        view, rows = _matching(path, schema, may_be_empty=settings.follow_every_s is not None)
        transitions, blocks = transitions + rows.transitions, blocks + rows.blocks
        for stream in view.streams:
            if not settings.draws_from(stream):
                continue
            theirs = read_origin(path, stream)
            if theirs is None:
                tell(
                    f"{path} has no record of how the stream {stream} was played; it is assumed "
                    "to have this run's game, actions, rewards and frame_skip"
                )
            elif what := disagreement(ours, theirs):
                raise LakeError(
                    f"{path}, stream {stream}: {what}; use the settings of the stream's run, or "
                    "leave the stream out by giving the others shares in "
                    "algorithm.learn_from.agents"
                )
    return LakeRows(transitions, blocks)


def _matching(path: Path, schema: LakeSchema, *, may_be_empty: bool) -> tuple[LakeView, LakeRows]:
    """Return the Lake's view and size if its rows have this run's schema."""
    lake = Lake.open(path, keeps_indices=False)
    if difference := _difference(lake.schema, schema):
        raise LakeError(
            f"{path}: {difference}; this run cannot learn from such rows: give it the "
            "env.observation and env.frame_stack of the Lake, or take the Lake out of "
            "algorithm.learn_from.lakes"
        )
    view, rows = _seen(lake)
    if not rows.transitions and not may_be_empty:
        raise LakeError(
            f"{path} has no sealed transitions; let the run that writes it save a checkpoint "
            "first, or take it out of algorithm.learn_from.lakes"
        )
    return view, rows


def _seen(lake: Lake) -> tuple[LakeView, LakeRows]:
    """Return the Lake's view and size; one segment at a time is in memory."""
    while True:
        view = lake.view()
        with suppress(EvictedError):  # its writer evicted a segment: look again
            counts = [(int(n_seen(part).sum()), len(part)) for part in view.parts()]
            return view, LakeRows(sum(n for n, _ in counts), sum(n for _, n in counts))


def _difference(theirs: LakeSchema, ours: LakeSchema) -> str | None:
    """Return the first difference with both values, or None if the two agree."""
    names = [field.name for field in fields(FramePacking)]
    for name in names:
        there, here = getattr(theirs.packing, name), getattr(ours.packing, name)
        if there != here:
            return f"packing.{name}: {there} there, {here} in this run"
    for name in _COMPARED:
        there, here = getattr(theirs, name), getattr(ours, name)
        if there != here:
            return f"{name}: {there} there, {here} in this run"
    return None
