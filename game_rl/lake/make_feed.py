"""From a config to the Lake that a run writes."""

import re
import secrets
from collections.abc import Callable
from pathlib import Path

from game_rl.config.lake import FeedConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.feed import LakeFeed
from game_rl.lake.lake import Capacity, Lake
from game_rl.lake.mark import Mark
from game_rl.lake.schema import LakeSchema
from game_rl.run_dir import RunDir, remove_directory

_OWN_STREAM = "run"
_FILES_IN_CAPACITY = 8  # whole files go: what is left is at most one of them less
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
        goes_on: from a checkpoint; else a Lake in the run's directory begins anew.
        saved: the stream and the mark of that checkpoint, which the Lake goes back to.

    Raises:
        LakeError: there is a Lake with other rows, or it lacks what the checkpoint needs.
    """
    settings = config.algorithm.lake
    if settings is None:
        return None
    path = lake_path(settings, run_dir)
    if settings.lake is True and not goes_on and path.exists():
        remove_directory(path)
    limit = settings.capacity_transitions
    schema = lake_schema(packing, frame_stack=config.env.frame_stack, n_actions=n_actions)
    lake = _open(path, schema, settings)
    if saved is not None:
        stream, mark = saved
        _go_back(lake, mark, stream)
    else:
        stream = _new_stream(lake, None if settings.lake is True else run_dir)
    feed = LakeFeed(
        lake,
        stream,
        n_envs=config.env.n_envs,
        on_full=settings.on_full,
        segment_transitions=None if limit is None else -(-limit // _FILES_IN_CAPACITY),
        tell=tell,
    )
    feed.keep_pins(path.name for path in run_dir.checkpoints_newest_first())
    return feed


def lake_path(settings: FeedConfig, run_dir: RunDir) -> Path:
    return settings.lake if isinstance(settings.lake, Path) else run_dir.lake


def lake_schema(packing: FramePacking, *, frame_stack: int, n_actions: int) -> LakeSchema:
    """Of a Lake that a run makes."""
    return LakeSchema(
        packing,
        frame_stack=frame_stack,
        action_dtype="uint8" if n_actions <= 256 else "int64",
        block_frames=max(64, 4 * frame_stack),  # frames that two blocks share are few
    )


def _open(path: Path, schema: LakeSchema, settings: FeedConfig) -> Lake:
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
        raise LakeError(
            f"{error}; to go on without this Lake, add --set algorithm.feed=null (pqn) or "
            "--set algorithm.replay.lake=false (dqn)"
        ) from None


def _new_stream(lake: Lake, run_dir: RunDir | None) -> str:
    """A name that nobody has used in this Lake; `run` for the first in a run's own one."""
    if run_dir is None and not any(lake.path.glob(f"{_OWN_STREAM}.*")):
        return _OWN_STREAM
    name = _OWN_STREAM if run_dir is None else re.sub(r"[^A-Za-z0-9_-]", "_", run_dir.root.name)
    return f"{name}-{secrets.token_hex(4)}"
