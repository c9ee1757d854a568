"""The Lake that a run writes: opened as its config says, and fed with its timesteps."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from game_rl.buffers.layout import Transitions
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Problem
from game_rl.envs.observation import ObservationFormat
from game_rl.errors import LakeError, UsageError
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake, other_level
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.mark import LAKE_FILE, NOTHING, LakeState, Mark
from game_rl.lake.segment_sink import OnFull
from game_rl.lake.writer import LakeWriter


class LakeFeed:
    """A Feed that writes one run's stream into a Lake, which may have other streams.

    A disk that fails does not end the training: the Lake stops growing, with one warning, and
    each checkpoint tries again. Timesteps that are lost meanwhile are a gap in the stream.

    Args:
        stream: name of the stream, which no other process may write. It is continued at its end.
        segment_transitions: seal a file after this many transitions, if it does not reach 32 MB
            before.
        seal_every_timesteps: make everything visible to readers after this many timesteps, in
            addition to checkpoints.
        tell: is called with a sentence when growth stops and when it resumes, from any thread.
        before: mark of the streams that this one continues, in a fork.

    Attributes:
        version: version of the policy that acts, counted in updates.
        is_held: whether `hold` was called.
        before: see above; `NOTHING` as soon as its rows are no longer needed.

    Raises:
        LakeError: the Lake cannot be written to now.
    """

    def __init__(
        self,
        lake: Lake,
        stream: str,
        *,
        n_envs: int,
        on_full: OnFull = "pause",
        segment_transitions: int | None = None,
        seal_every_timesteps: int | None = None,
        tell: Callable[[str], None] = lambda _: None,
        before: Mark = NOTHING,
    ) -> None:
        self.lake = lake
        self.stream = stream
        self.before = before
        self.on_full = on_full
        self.version = 0
        self._tell = tell
        self._new_writer = partial(
            LakeWriter,
            lake,
            stream,
            n_envs=n_envs,
            segment_transitions=segment_transitions,
            seal_every_transitions=seal_every_timesteps,
            on_full=on_full,
            tell=tell,
        )
        self.is_held = False
        self._is_failing = False  # and the failure has been reported
        try:
            self._writer: LakeWriter | None = self._new_writer(firsts=before.ends())
        except OSError as error:
            raise LakeError(
                f"{lake.path}: {error.strerror or error}; free some space or allow writing there, "
                "or name another folder"
            ) from error

    def append(self, step: Transitions) -> None:
        """Append one vec step.

        Raises:
            ValueError: a frame has a pixel that the Lake's packing cannot hold.
        """
        if self._writer is None or self.is_held:
            return
        try:
            self._writer.append(**step._asdict(), version=self.version)
        except LakeError as error:
            self._fail(error)

    # ------------------------------------------------------------------ checkpoints

    @property
    def next_transitions(self) -> list[int]:
        """Number of each env's next transition; empty while the Lake does not grow."""
        return [] if self._writer is None or self.is_held else self._writer.next_transitions

    def pin(self, name: str) -> Mark | None:
        """Seal, mark the stream and pin what the mark names; None if the Lake cannot be read.

        Raises:
            OSError: the mark could not be written.
        """
        self._seal()
        try:
            return self.lake.pin(self._pin(name), self.stream, before=self.before)
        except LakeError as error:
            self._tell(f"{error}; the checkpoint is saved without the Lake")
            return None

    def forget_before(self, n_numbers: int) -> None:
        """Drop the streams before this one if each env has added at least this many numbers."""
        begun = self.before.ends()
        own = [end - begun.get(env, 0) for env, end in enumerate(self.next_transitions)]
        if own and min(own) >= n_numbers:
            self.before = NOTHING

    def unpin(self, name: str) -> None:
        """Remove a pin. If that fails, `keep_pins` removes it at the next start."""
        with suppress(OSError, LakeError):
            self.lake.unpin(self._pin(name))

    def keep_pins(self, names: Iterable[str]) -> None:
        """Remove all pins of this stream but these."""
        self.lake.keep_pins(map(self._pin, names), among=f"{self.stream}.")

    def leave_gap(self) -> None:
        """Record that the envs do not continue from the end of the stream."""
        if self._writer is not None:
            self._writer.leave_gap()

    # ------------------------------------------------------------------ growth

    @property
    def is_paused(self) -> bool:
        """Whether timesteps are being lost to the Lake."""
        return self.is_held or self._writer is None or self._writer.is_paused

    def hold(self) -> None:
        """Stop adding to the Lake, before the disk is full."""
        self.is_held = True

    def go_on(self) -> None:
        """Add to the Lake again after `hold`."""
        if self.is_held:
            self.is_held = False
            try:
                self.leave_gap()
            except LakeError as error:
                self._fail(error)

    def close(self) -> None:
        """Seal and end the writer's thread; if the disk fails, only warn."""
        writer = self._writer
        self._writer = None
        if writer is not None:
            try:
                writer.close()
            except LakeError as error:
                self._tell(str(error))

    # ------------------------------------------------------------------ the writer

    def _seal(self) -> None:
        try:
            if self._writer is None:
                self._writer = self._new_writer(firsts=self.before.ends())
                self.leave_gap()
                return  # the next timesteps show whether the disk can be written again
            if self._writer.seal() and self._is_failing:
                self._is_failing = False
                self._tell(f"the Lake at {self.lake.path} grows again")
        except (LakeError, OSError) as error:
            self._fail(error)

    def _fail(self, error: LakeError | OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._tell(
                f"{error}; training continues, but the Lake at {self.lake.path} stops growing; "
                "each checkpoint tries to write to it again"
            )
        writer = self._writer
        self._writer = None
        if writer is not None:
            with suppress(LakeError):  # the error that was just reported
                writer.close()

    def _pin(self, name: str) -> str:
        return f"{self.stream}.{name}"


_GB = 10**9
_SET_ASIDE = "set-aside-"  # prefix of the pins of checkpoints that were set aside


def make_lake_feed(
    config: RunConfig,
    run_dir: RunDir,
    *,
    observation_format: ObservationFormat,
    n_actions: int,
    goes_on: bool,
    saved: LakeState | None,
    set_aside: Mapping[str, Mark] | None = None,
    tell: Callable[[str], None],
) -> LakeFeed | None:
    """Make the feed of a run that writes a Lake; None if it writes none.

    Args:
        goes_on: from a checkpoint; if False, the stream that the run wrote before is deleted.
        saved: the Lake at that checkpoint, to which the run's stream is taken back, if it had one.
        set_aside: marks of later checkpoints that were set aside, by checkpoint name; the Lake
            keeps what they name.

    Raises:
        LakeError: the Lake has other rows, or lacks data that the checkpoint needs.
    """
    settings = config.lake
    mark = before = NOTHING if saved is None else saved.parsed_mark(run_dir.checkpoints)
    if settings is None:
        return None
    level = settings.compression_level
    schema = LakeSchema.of(observation_format, n_actions=n_actions, level=level)
    path = lake_path(settings, run_dir)
    limit_gb = settings.capacity_gb
    capacity = Capacity(
        transitions=settings.capacity_transitions,
        n_bytes=None if limit_gb is None else round(limit_gb * _GB),
    )
    try:
        lake = Lake.create(path, schema, capacity=capacity)
    except OSError as error:
        raise LakeError(
            f"{path}: {error.strerror or error}; make it writable, or name another folder"
        ) from error
    stream = run_dir.identity().id if saved is None else saved.stream
    aside = []
    for name, its_mark in (set_aside or {}).items():
        aside.append(f"{_SET_ASIDE}{name}")
        lake.keep(f"{stream}.{aside[-1]}", its_mark)
    if saved is not None:
        try:
            lake.resume(mark, stream)
        except LakeError as error:
            text = f"{error}; to continue without this Lake, add --set lake=null"
            raise LakeError(text) from None
        before = mark.of(saved.ancestors)
    elif not goes_on:
        lake.delete_stream(stream)
    feed = LakeFeed(
        lake,
        stream,
        n_envs=config.env.n_envs,
        on_full=settings.on_full,
        segment_transitions=lake.capacity.file_transitions,
        seal_every_timesteps=settings.seal_every_timesteps,
        tell=tell,
        before=before,
    )
    if saved is None and any(feed.next_transitions):
        feed.leave_gap()  # the checkpoint does not record how far the stream had come
    feed.keep_pins([*aside, *(path.name for path in run_dir.checkpoints_newest_first())])
    return feed


def lake_path(settings: LakeConfig, run_dir: RunDir) -> Path:
    return run_dir.lake if settings.path is None else settings.path


def level_problems(config: RunConfig, lake: Path | None = None) -> Iterator[Problem]:
    """Check that a Lake which exists was made with the config's compression level.

    Args:
        lake: its folder; None: that of the run's own Lake.
    """
    if config.lake is None:
        return
    path = lake_path(config.lake, RunDir(config.run_dir)) if lake is None else lake
    try:
        schema = Lake.open(path).schema
    except LakeError:  # there is none, or it is damaged, which is reported when it is opened
        return
    wanted = config.lake.compression_level
    if schema.arrays is None and schema.level != wanted:
        yield Problem(("lake", "compression_level"), other_level(path, schema.level, wanted))


def check_level(config: RunConfig, lake: Path | None = None) -> None:
    """As `level_problems`, where the file of the config is not known.

    Raises:
        UsageError: the Lake was made with another level.
    """
    for problem in level_problems(config, lake):
        raise UsageError(f"{'.'.join(problem.key)}: {problem.message}")


class LakeFeature(Feature):
    """The Lake of a run; its size on the disk is forecast by the preflight, which measures it."""

    file = LAKE_FILE

    def fetched(self, run_dir: RunDir, checkpoint: Path, paths: Collection[str]) -> None:
        """Pin the part of the Lake that the checkpoint needs, as the run did."""
        if "lake/lake.json" in paths:
            state = json.loads((checkpoint / LAKE_FILE.name).read_bytes())
            pins = run_dir.lake / "pins"
            pins.mkdir(exist_ok=True)
            write_atomic(pins / f"{state['stream']}.{checkpoint.name}.json", str(state["mark"]))

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of blocks that are not on disk yet.

        Each env has one that is being filled and up to two that wait. Four more are counted for the
        compressor.
        """
        if run.config.lake is None:
            return ()
        schema = LakeSchema.of(run.observation_format, n_actions=run.n_actions)
        block = schema.block_frames * run.observation_format.row_bytes
        return (Part("Lake's writer", (3 * run.config.env.n_envs + 4) * block),)
