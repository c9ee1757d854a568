"""The Lake's growth as curves, and the disk that it must not fill."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.errors import LakeError
from game_rl.event_log import EventLog
from game_rl.events import DiskForecast
from game_rl.lake.feed import LakeFeed
from game_rl.system.machine import disk_free_bytes
from game_rl.system.units import GIB, MIB, format_bytes, format_duration

_MARGIN_BYTES = 256 * MIB  # above what the run itself stops at: see ResourceMonitorCallback
_LEAST_GROWTH_BYTES = MIB  # before which nothing is projected
_TOLD_AGAIN = 4  # when a quarter of the timesteps that were told is left


@dataclass(frozen=True)
class Growth:
    """How far a Lake had come at a moment."""

    seconds: float
    timesteps: int
    n_bytes: int


@dataclass(frozen=True)
class FullDisk:
    """When a Lake that grows on as it did has filled the disk."""

    in_s: float
    at_timesteps: int


def project(
    start: Growth,
    now: Growth,
    *,
    spare_bytes: int,
    total_timesteps: int,
    most_transitions: int | None = None,
    most_bytes: int | None = None,
) -> FullDisk | None:
    """None if it needs no more than `spare_bytes` until the run ends, or until its own limit."""
    grown, timesteps = now.n_bytes - start.n_bytes, now.timesteps - start.timesteps
    if grown < _LEAST_GROWTH_BYTES or timesteps <= 0:
        return None
    each = grown / timesteps
    left = each * (total_timesteps - now.timesteps)
    if most_transitions is not None:
        left = min(left, each * most_transitions - now.n_bytes)
    if most_bytes is not None:
        left = min(left, most_bytes - now.n_bytes)
    if left <= spare_bytes:
        return None
    share = max(0, spare_bytes) / grown
    return FullDisk(
        in_s=share * (now.seconds - start.seconds),
        at_timesteps=now.timesteps + round(share * timesteps),
    )


class LakeGrowthCallback(BoundaryCallback):
    """Writes `replay/lake_…` curves, warns of a full disk early, and keeps a margin free.

    At the margin the Lake stops growing, or its oldest files go, as its feed's `on_full` says; when
    there is space again, it grows on. The training does not stop. Also tells the feed which policy
    acts.

    Args:
        most_transitions, most_bytes: that its capacity lets the Lake have.
        reserved_bytes: that the run's next checkpoint needs on the same disk.
        events: gets forecasts of a full disk, and warnings.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        feed: LakeFeed,
        *,
        total_timesteps: int,
        most_transitions: int | None,
        most_bytes: int | None,
        reserved_bytes: Callable[[], int],
        events: EventLog,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._feed = feed
        self._total_timesteps = total_timesteps
        self._most_transitions, self._most_bytes = most_transitions, most_bytes
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
            with suppress(OSError):  # as in `_now`
                self._look_ahead(now)
        self.logger.record("replay/lake_gib", now.n_bytes / GIB)
        self.logger.record("replay/lake_paused", float(self._feed.is_paused))

    def _look_ahead(self, now: Growth) -> None:
        margin = self._reserved_bytes() + _MARGIN_BYTES
        spare = disk_free_bytes(self._feed.lake.path) - margin
        self._protect(spare, margin)
        full = project(
            self._start,
            now,
            spare_bytes=spare,
            total_timesteps=self._total_timesteps,
            most_transitions=self._most_transitions,
            most_bytes=self._most_bytes,
        )
        self._tell_of(full)

    def _now(self) -> Growth:
        n_bytes = self._start.n_bytes
        with suppress(OSError):  # a disk that fails is the feed's to tell
            n_bytes = self._feed.lake.n_bytes()
        return Growth(time.monotonic(), self.num_timesteps, n_bytes)

    def _protect(self, spare: int, margin: int) -> None:
        feed, path = self._feed, self._feed.lake.path
        while spare <= 0 and feed.on_full == "evict" and self._has_evicted():
            spare = disk_free_bytes(path) - margin
        if spare <= 0 and not feed.is_held:
            feed.hold()
            self._events.warn(
                f"the Lake at {path} stops growing: the disk has "
                f"{format_bytes(max(0, spare + margin))} left, and {format_bytes(margin)} are kept "
                "free for checkpoints; the training goes on, and so does the Lake when there is "
                "space again"
            )
        elif feed.is_held and spare > _MARGIN_BYTES:
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
                f"little space is left on the disk: the oldest files of the Lake at {path} go"
            )
        return has_evicted

    def _tell_of(self, full: FullDisk | None) -> None:
        if full is None or self._feed.is_held:
            return
        left = full.at_timesteps - self.num_timesteps
        if left > self._told_timesteps / _TOLD_AGAIN:
            return
        self._told_timesteps = left
        then = "it stops growing" if self._feed.on_full == "pause" else "its oldest files go"
        text = (
            f"the disk is full in {format_duration(full.in_s)}, at timestep "
            f"{full.at_timesteps:,}, if the Lake at {self._feed.lake.path} grows on like this; "
            f"then {then}; free some space, or give it a smaller capacity"
        )
        self._events.emit(
            DiskForecast(
                timesteps=self.num_timesteps,
                text=text,
                full_in_s=round(full.in_s, 1),
                full_at_timesteps=full.at_timesteps,
            )
        )
