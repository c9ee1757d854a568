"""From a config to the Lake that a run writes."""

from collections.abc import Callable
from pathlib import Path

from game_rl.config.lake import LakeConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.feed import LakeFeed
from game_rl.lake.lake import Capacity, Lake
from game_rl.lake.mark import Mark
from game_rl.lake.schema import LakeSchema
from game_rl.run_dir import RunDir

_FILES_IN_CAPACITY = 8  # whole files go
_GB = 10**9


def make_lake_feed(
    config: RunConfig,
    run_dir: RunDir,
    *,
    packing: FramePacking,
    n_actions: int,
    goes_on: bool,
    saved: tuple[str, Mark] | None,
    tell: Callable[[str], None],
) -> LakeFeed | None:
    """The feed of a run that writes a Lake; None if it writes none.

    Args:
        goes_on: from a checkpoint; else what the run itself wrote before is deleted.
        saved: the stream and the mark of that checkpoint, which the stream goes back to.

    Raises:
        LakeError: there is a Lake with other rows, or it lacks what the checkpoint needs.
    """
    settings = config.lake
    if settings is None:
        return None
    schema = lake_schema(packing, frame_stack=config.env.frame_stack, n_actions=n_actions)
    lake = _open(lake_path(settings, run_dir), schema, settings)
    stream = run_dir.identity().id if saved is None else saved[0]
    if saved is not None:
        _go_back(lake, saved[1], stream)
    elif not goes_on:
        lake.delete_stream(stream)
    feed = _feed(lake, stream, settings, n_envs=config.env.n_envs, tell=tell)
    if saved is None and any(feed.next_transitions):
        feed.leave_gap()  # the checkpoint does not say where in the stream it was
    feed.keep_pins(path.name for path in run_dir.checkpoints_newest_first())
    return feed


def lake_path(settings: LakeConfig, run_dir: RunDir) -> Path:
    return run_dir.lake if settings.path is None else settings.path


def most_on_disk(capacity_transitions: int) -> int:
    """Rows of a Lake with this capacity: a file goes when none of its rows is seen any more."""
    return capacity_transitions + 2 * _file_transitions(capacity_transitions)


def _file_transitions(capacity_transitions: int) -> int:
    return -(-capacity_transitions // _FILES_IN_CAPACITY)


def lake_schema(packing: FramePacking, *, frame_stack: int, n_actions: int) -> LakeSchema:
    """Of a Lake that a run makes."""
    return LakeSchema(
        packing,
        frame_stack=frame_stack,
        action_dtype="uint8" if n_actions <= 256 else "int64",
        block_frames=max(64, 4 * frame_stack),  # frames that two blocks share are few
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
            f"{path}: {error.strerror or error}; allow writing there, or name another folder"
        ) from error


def _go_back(lake: Lake, mark: Mark, stream: str) -> None:
    try:
        lake.resume(mark, stream)
    except LakeError as error:
        raise LakeError(f"{error}; to go on without this Lake, add --set lake=null") from None


def _feed(
    lake: Lake, stream: str, settings: LakeConfig, *, n_envs: int, tell: Callable[[str], None]
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
    )
