"""The Lake that a run writes: opened, refilled, watched while it grows."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import LAKE_MARGIN_BYTES, FileName
from game_rl.errors import CheckpointError, LakeError
from game_rl.events import DiskForecast
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.lake.horizon import NO_LIMIT, Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import LakeFeed, check_level, lake_path, make_lake_feed
from game_rl.lake.mark import LAKE_FILE, LakeState, Mark, new_stream
from game_rl.lake.origin import origin_of, take_origins, write_origin
from game_rl.lake.pond_refill import refill_replay, save_lake
from game_rl.lake.segment import SegmentName
from game_rl.seeds import seed_for
from game_rl.system.machine import disk_free_bytes, is_same_disk
from game_rl.system.units import GIB, MIB, format_bytes, format_duration
from game_rl.training.extension import Extension, RunParts
from game_rl.training.fork_parts import ForkPlan


class LakeExtension(Extension):
    """The Lake that gets every timestep of the run, and restores a DQN's replay."""

    acts_first = True
    opening = "opening the Lake"

    def __init__(self, feed: LakeFeed, model: BaseAlgorithm) -> None:
        self._feed = feed
        self._model = model
        self._kept: LakeState | None = None  # in the newest checkpoint

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Open the run's Lake and let the algorithm write to it; None if the run writes no Lake.

        Raises:
            LakeError: the Lake cannot be used as it is.
        """
        if parts.is_offline:
            return None
        model = parts.model
        checkpoint = parts.checkpoint
        feed = make_lake_feed(
            parts.config,
            parts.run_dir,
            observation_format=parts.observation_format,
            n_actions=len(parts.game.action_names),
            goes_on=checkpoint is not None,
            saved=None if checkpoint is None else checkpoint.read(LAKE_FILE),
            set_aside=_set_aside_marks(parts.run_dir),
            tell=parts.events.warn,
        )
        if feed is None:
            return None
        with suppress(OSError):  # the feed reports a failing disk
            write_origin(feed.lake.path, feed.stream, origin_of(parts.config, parts.game))
        model.feeds = (feed,)
        return cls(feed, model)

    @classmethod
    def check_fork(cls, plan: ForkPlan) -> None:
        taken = _taken_over(plan)
        if taken is not None:
            check_level(plan.config, taken[0])

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:
        """Link the parent's files into the fork's Lake.

        The fork writes a stream of its own, so two runs never write rows of the same name. The
        stream has no rows yet, and their numbers continue those of the parent.

        Raises:
            LakeError: a file is missing or damaged.
        """
        if plan.config.lake is None:
            return {}
        stream = run_dir.identity().id
        taken = _taken_over(plan)
        if taken is None:
            return {LAKE_FILE.name: new_stream(stream)}
        source, state = taken
        target = lake_path(plan.config.lake, run_dir)
        mark = state.parsed_mark(plan.source.checkpoint.path)
        pin = f"{stream}.{plan.first_checkpoint(run_dir).name}"
        Lake.open(source).link_to(target, mark, pin=pin)
        streams = {SegmentName.of(Path(each.name)).stream for each in mark.segments}
        take_origins(source, target, streams)
        seed = None
        if plan.new.random_numbers:
            seed = seed_for(plan.config.seed, f"replay/{plan.timesteps}")
        return {LAKE_FILE.name: state.forked(stream, replay_seed=seed)}

    def callbacks(self, parts: RunParts, checkpoints: CheckpointCallback) -> Sequence[BaseCallback]:
        lake = self._feed.lake

        def reserved_bytes() -> int:
            is_same = is_same_disk(lake.path, parts.run_dir.root)
            return checkpoints.expected_bytes if is_same else 0

        return [
            LakeGrowthCallback(
                self._feed,
                total_timesteps=parts.config.total_timesteps,
                reserved_bytes=reserved_bytes,
                events=parts.events,
                every_timesteps=parts.rhythm,
            )
        ]

    def restore(self, checkpoint: Checkpoint) -> int:
        state = checkpoint.read(LAKE_FILE)
        return 0 if state is None else refill_replay(self._model, self._feed, state)

    def restored(self, *, plays_on: bool) -> None:
        if not plays_on:
            self._feed.leave_gap()

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:
        self._kept = save_lake(model, self._feed, name)
        return {} if self._kept is None else {LAKE_FILE.name: self._kept}

    def forget(self, name: str) -> None:
        self._feed.unpin(name)

    def replay_sizes(self, path: Path) -> tuple[int, int] | None:
        if self._kept is None:
            return None
        mark = self._kept.parsed_mark(path)
        stored = sum(segment.n_bytes for segment in mark.segments)
        return stored, mark.n_transitions * self._feed.lake.schema.raw_bytes

    def close(self) -> None:
        self._feed.close()


def _taken_over(plan: ForkPlan) -> tuple[Path, LakeState] | None:
    """Return the parent's Lake, and its state, if the fork takes over the replay in it."""
    settings = plan.source.config.lake
    state = plan.source.checkpoint.read(LAKE_FILE)
    if settings is None or plan.new.replay or state is None or state.replay is None:
        return None
    return lake_path(settings, plan.source.run_dir), state


def _set_aside_marks(run_dir: RunDir) -> dict[str, Mark]:
    """Return the marks of checkpoints that were set aside when the run went back, if readable."""
    marks = {}
    for path in run_dir.set_aside_checkpoints():
        with suppress(CheckpointError, LakeError):
            if (state := Checkpoint(path).read(LAKE_FILE)) is not None:
                marks[path.name] = state.parsed_mark(path)
    return marks


_LEAST_GROWTH_BYTES = MIB  # nothing is projected from less
_TOLD_AGAIN = 4  # when a quarter of the timesteps in the last forecast is left


@dataclass(frozen=True)
class Growth:
    """Size of a Lake at one moment."""

    seconds: float
    timesteps: int
    n_bytes: int


@dataclass(frozen=True)
class FullDisk:
    """Moment at which a Lake that keeps growing at the same rate has filled the disk."""

    in_s: float
    at_timesteps: int


def project(
    start: Growth,
    now: Growth,
    *,
    spare_bytes: int,
    total_timesteps: int,
    capacity: Capacity = NO_LIMIT,
) -> FullDisk | None:
    """Return when the Lake will have filled `spare_bytes`.

    Returns:
        None if it will not have until the run ends or the Lake reaches its own limit, or if it has
        not grown enough to tell.
    """
    grown = now.n_bytes - start.n_bytes
    timesteps = now.timesteps - start.timesteps
    if grown < _LEAST_GROWTH_BYTES or timesteps <= 0:
        return None
    each = grown / timesteps
    left = each * (total_timesteps - now.timesteps)
    if capacity.transitions is not None:
        left = min(left, each * capacity.transitions - now.n_bytes)
    if capacity.n_bytes is not None:
        left = min(left, capacity.n_bytes - now.n_bytes)
    if left <= spare_bytes:
        return None
    share = max(0, spare_bytes) / grown
    return FullDisk(
        in_s=share * (now.seconds - start.seconds),
        at_timesteps=now.timesteps + round(share * timesteps),
    )


class LakeGrowthCallback(BoundaryCallback):
    """Writes `replay/lake_…` curves, warns early of a full disk, and keeps a margin free.

    At the margin the Lake stops growing or its oldest files are deleted, depending on the feed's
    `on_full`. It grows again once there is space. The training does not stop. The callback also
    sets the feed's version of the policy that acts.

    Args:
        reserved_bytes: returns the bytes that the run's next checkpoint needs on the Lake's disk.
        events: gets forecasts of a full disk, and warnings.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        feed: LakeFeed,
        *,
        total_timesteps: int,
        reserved_bytes: Callable[[], int],
        events: EventLog,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._feed = feed
        self._total_timesteps = total_timesteps
        self._reserved_bytes = reserved_bytes
        self._events = events
        self._told_timesteps = float("inf")
        self._start = Growth(0, 0, 0)
        self._has_told_eviction = False

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._start = self._now()
        self._feed.version = self.model._n_updates

    def _on_rollout_start(self) -> None:
        self._feed.version = self.model._n_updates
        super()._on_rollout_start()

    def on_boundary(self, *, is_last: bool) -> None:
        now = self._now()
        if not is_last:
            with suppress(OSError):  # reported by the feed, as in `_now`
                self._look_ahead(now)
        self.logger.record("replay/lake_gib", now.n_bytes / GIB)
        self.logger.record("replay/lake_paused", float(self._feed.is_paused))

    def _look_ahead(self, now: Growth) -> None:
        margin = self._reserved_bytes() + LAKE_MARGIN_BYTES
        spare = disk_free_bytes(self._feed.lake.path) - margin
        self._protect(spare, margin)
        full = project(
            self._start,
            now,
            spare_bytes=spare,
            total_timesteps=self._total_timesteps,
            capacity=self._feed.lake.capacity,
        )
        self._tell_of(full)

    def _now(self) -> Growth:
        n_bytes = self._start.n_bytes
        with suppress(OSError):  # the feed reports a disk that fails
            n_bytes = self._feed.lake.n_bytes()
        return Growth(time.monotonic(), self.num_timesteps, n_bytes)

    def _protect(self, spare: int, margin: int) -> None:
        feed = self._feed
        path = self._feed.lake.path
        while spare <= 0 and feed.on_full == "evict" and self._has_evicted():
            spare = disk_free_bytes(path) - margin
        if spare <= 0 and not feed.is_held:
            feed.hold()
            self._events.warn(
                f"the Lake at {path} stops growing: the disk has "
                f"{format_bytes(max(0, spare + margin))} left, and {format_bytes(margin)} are kept "
                "free for checkpoints; the training continues, and the Lake grows again once there "
                "is more space"
            )
        elif feed.is_held and spare > LAKE_MARGIN_BYTES:
            feed.go_on()
            self._events.warn(f"the Lake at {path} grows again")

    def _has_evicted(self) -> bool:
        try:
            has_evicted = self._feed.lake.evict_oldest()
        except (OSError, LakeError):
            return False
        if has_evicted and not self._has_told_eviction:
            self._has_told_eviction = True
            path = self._feed.lake.path
            self._events.warn(
                "little space is left on the disk: the oldest files of the Lake at "
                f"{path} are deleted"
            )
        return has_evicted

    def _tell_of(self, full: FullDisk | None) -> None:
        if full is None or self._feed.is_held:
            return
        left = full.at_timesteps - self.num_timesteps
        if left > self._told_timesteps / _TOLD_AGAIN:
            return
        self._told_timesteps = left
        then = (
            "the Lake then stops growing"
            if self._feed.on_full == "pause"
            else "its oldest files are then deleted"
        )
        text = (
            f"the disk will be full in {format_duration(full.in_s)}, at timestep "
            f"{full.at_timesteps:,}, if the Lake at {self._feed.lake.path} keeps growing like "
            f"this; {then}; free some space, or give the Lake a smaller capacity"
        )
        self._events.emit(
            DiskForecast(
                timesteps=self.num_timesteps,
                text=text,
                full_in_s=round(full.in_s, 1),
                full_at_timesteps=full.at_timesteps,
            )
        )
