"""Opens the Lake that a run writes, as its config says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.lake import LakeConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.capacity import Capacity
from game_rl.lake.feed import LakeFeed
from game_rl.lake.lake import Lake
from game_rl.lake.mark import NOTHING, Mark
from game_rl.lake.schema import LakeSchema
from game_rl.run_dir import RunDir

_FILES_IN_CAPACITY = 8  # files that the capacity is divided into: only whole files are deleted
_GB = 10**9
_SET_ASIDE = "set-aside-"  # prefix of the pins of checkpoints that were set aside


@dataclass(frozen=True)
class SavedStream:
    """The stream of a run at a checkpoint.

    Attributes:
        ancestors: the streams that this one continues in a fork; the mark includes them.
    """

    stream: str
    mark: Mark
    ancestors: tuple[str, ...] = ()


def make_lake_feed(
    config: RunConfig,
    run_dir: RunDir,
    *,
    packing: FramePacking,
    n_actions: int,
    goes_on: bool,
    saved: SavedStream | None,
    set_aside: Mapping[str, Mark] | None = None,
    tell: Callable[[str], None],
) -> LakeFeed | None:
    """Make the feed of a run that writes a Lake; None if it writes none.

    Args:
        goes_on: from a checkpoint; if False, the stream that the run wrote before is deleted.
        saved: the stream at that checkpoint, to which it is taken back, if it has one.
        set_aside: marks of later checkpoints that were set aside, by checkpoint name; the Lake
            keeps what they name.

    Raises:
        LakeError: the Lake has other rows, or lacks data that the checkpoint needs.
    """
    settings = config.lake
    if settings is None:
        return None
    schema = lake_schema(packing, frame_stack=config.env.frame_stack, n_actions=n_actions)
    lake = _open(lake_path(settings, run_dir), schema, settings)
    stream = run_dir.identity().id if saved is None else saved.stream
    before = NOTHING
    aside = _kept_aside(lake, stream, set_aside or {})
    if saved is not None:
        _go_back(lake, saved.mark, stream)
        before = saved.mark.of(saved.ancestors)
    elif not goes_on:
        lake.delete_stream(stream)
    feed = _feed(lake, stream, settings, n_envs=config.env.n_envs, tell=tell, before=before)
    if saved is None and any(feed.next_transitions):
        feed.leave_gap()  # the checkpoint does not record how far the stream had come
    feed.keep_pins([*aside, *(path.name for path in run_dir.checkpoints_newest_first())])
    return feed


def _kept_aside(lake: Lake, stream: str, marks: Mapping[str, Mark]) -> list[str]:
    """Pin what checkpoints that were set aside need, and return the names of the pins."""
    for name, mark in marks.items():
        lake.keep(f"{stream}.{_SET_ASIDE}{name}", mark)
    return [f"{_SET_ASIDE}{name}" for name in marks]


def lake_path(settings: LakeConfig, run_dir: RunDir) -> Path:
    return run_dir.lake if settings.path is None else settings.path


def most_on_disk(capacity_transitions: int) -> int:
    """Return the most rows that a Lake of this capacity has on disk.

    It is above the capacity, because a file is deleted only when all of its rows are hidden.
    """
    return capacity_transitions + 2 * _file_transitions(capacity_transitions)


def _file_transitions(capacity_transitions: int) -> int:
    return -(-capacity_transitions // _FILES_IN_CAPACITY)


def lake_schema(packing: FramePacking, *, frame_stack: int, n_actions: int) -> LakeSchema:
    """Return the schema of a Lake that a run creates."""
    return LakeSchema(
        packing,
        frame_stack=frame_stack,
        action_dtype="uint8" if n_actions <= 256 else "int64",
        block_frames=max(64, 4 * frame_stack),  # so that blocks share few of their frames
    )


def _open(path: Path, schema: LakeSchema, settings: LakeConfig) -> Lake:
    limit_gb = settings.capacity_gb
    capacity = Capacity(
        transitions=settings.capacity_transitions,
        n_bytes=None if limit_gb is None else round(limit_gb * _GB),
    )
    try:
        return Lake.create(path, schema, capacity=capacity)
    except OSError as error:
        raise LakeError(
            f"{path}: {error.strerror or error}; make it writable, or name another folder"
        ) from error


def _go_back(lake: Lake, mark: Mark, stream: str) -> None:
    try:
        lake.resume(mark, stream)
    except LakeError as error:
        raise LakeError(f"{error}; to continue without this Lake, add --set lake=null") from None


def _feed(
    lake: Lake,
    stream: str,
    settings: LakeConfig,
    *,
    n_envs: int,
    tell: Callable[[str], None],
    before: Mark,
) -> LakeFeed:
    limit = settings.capacity_transitions
    return LakeFeed(
        lake,
        stream,
        n_envs=n_envs,
        on_full=settings.on_full,
        segment_transitions=None if limit is None else _file_transitions(limit),
        seal_every_timesteps=settings.seal_every_timesteps,
        tell=tell,
        before=before,
    )
