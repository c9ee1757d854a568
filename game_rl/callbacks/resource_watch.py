"""Warnings when little disk or RAM is left, and when a run takes most of what was forecast."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from game_rl.events import PlanPassed, ResourceLow
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import Resource, SavedForecast, read_forecast
from game_rl.statistics import percent
from game_rl.system.units import format_bytes

SHARES = (0.8, 1.0)
_DISK_EVERY_S = 60.0  # between two looks at the sizes of all files
_NAMES = {"ram": "memory", "disk": "disk"}


class PlanWatch:
    """Emits `PlanPassed` when a run's memory or disk passes a share of the forecast.

    The size of the Lake is left out on both sides, because it has limits and warnings of its own.

    Args:
        run_dir: has the forecast, `preflight.json`; without it nothing is compared.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self, run_dir: RunDir, events: EventLog, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run_dir = run_dir
        self._events = events
        self._clock = clock
        self._forecast: SavedForecast | None = None
        self._planned: dict[Resource, int] = {}
        self._passed: dict[Resource, float] = {}
        self._looked_s = float("-inf")

    def look(self, timesteps: int, *, ram_used: int) -> None:
        """Compare what is used with the forecast.

        Args:
            ram_used: bytes of memory of the run's processes.
        """
        if self._forecast is None:
            self._begin()
        self._compare(timesteps, "ram", ram_used)
        if self._clock() - self._looked_s >= _DISK_EVERY_S:
            self._looked_s = self._clock()
            self._compare(timesteps, "disk", self._run_dir.size_bytes())

    def _begin(self) -> None:
        """Read the forecast, and which of its shares the log says were passed already."""
        self._forecast = read_forecast(self._run_dir.preflight) or SavedForecast()
        self._planned = {
            "ram": self._forecast.ram.predicted_peak_bytes or 0,
            "disk": self._forecast.disk.predicted_total_bytes or 0,
        }
        for event in read_events(self._run_dir):
            if not isinstance(event, PlanPassed):
                continue
            if event.planned_bytes == self._planned.get(event.resource):
                self._passed[event.resource] = event.share

    def _compare(self, timesteps: int, resource: Resource, used: int) -> None:
        planned = self._planned[resource]
        before = self._passed.get(resource, 0.0)
        passed = max((s for s in SHARES if planned and used >= s * planned), default=0.0)
        if passed <= before:
            return
        self._passed[resource] = passed
        text = (
            f"{_NAMES[resource]}: {format_bytes(used)}, {percent(used / planned, 1)} of the "
            f"forecast of {format_bytes(planned)}"
        )
        assert self._forecast is not None
        largest = self._forecast.largest_growing_part(resource)
        part = None if largest is None else largest.name
        if resource == "disk":
            part, size = _largest_folder(self._run_dir)
            text += f"; {part} takes most, {format_bytes(size)}"
        self._events.emit(
            PlanPassed(
                timesteps=timesteps,
                resource=resource,
                share=passed,
                used_bytes=used,
                planned_bytes=planned,
                part=part,
                text=text,
            )
        )


def _largest_folder(run_dir: RunDir) -> tuple[str, int]:
    """Return the folder or file of the run directory that takes most, but for the Lake."""
    sizes: Counter[str] = Counter()
    for path in run_dir.root.rglob("*"):
        if not path.is_relative_to(run_dir.lake):
            with suppress(OSError):  # it was renamed or deleted meanwhile
                is_file = path.is_file()
                sizes[path.relative_to(run_dir.root).parts[0]] += path.stat().st_size * is_file
    return max(sizes.items(), key=lambda item: item[1], default=("", 0))


_GB = 10**9


class LowWater:
    """The levels that a free amount falls below: a threshold, its half, its quarter, and so on.

    Each level counts once. All count again when twice the threshold is free.
    """

    def __init__(self, threshold_bytes: int) -> None:
        self._threshold = self._next = threshold_bytes

    def crossed(self, free_bytes: int) -> int | None:
        """Return the lowest level that is above `free_bytes`; None if it counted already."""
        if free_bytes >= 2 * self._threshold:
            self._next = self._threshold
        if free_bytes >= self._next:
            return None
        level = self._next
        while free_bytes < level // 2:
            level //= 2
        self._next = level // 2
        return level


class ResourceWatch:
    """Emits `ResourceLow` when less than a threshold is free, and again at each half of it.

    Args:
        run_dir: has the plan, `preflight.json`, which may be missing.
        warn_disk_gb: threshold of free disk in 10^9 bytes; None: no warnings.
        warn_ram_gb: threshold of free RAM, likewise.
    """

    def __init__(
        self,
        run_dir: RunDir,
        events: EventLog,
        *,
        warn_disk_gb: float | None,
        warn_ram_gb: float | None,
    ) -> None:
        self._run_dir = run_dir
        self._events = events
        self._thresholds: dict[Resource, float | None] = {"disk": warn_disk_gb, "ram": warn_ram_gb}
        self._levels: dict[Resource, LowWater] = {
            resource: LowWater(round(threshold * _GB))
            for resource, threshold in self._thresholds.items()
            if threshold is not None
        }

    def look(self, timesteps: int, *, disk_free: int, ram_free: int, ram_used: int) -> None:
        """Compare what is free with the thresholds.

        Args:
            ram_used: memory of the run's processes, for the text.
        """
        free: dict[Resource, int] = {"disk": disk_free, "ram": ram_free}
        for resource, levels in self._levels.items():
            level = levels.crossed(free[resource])
            if level is not None:
                self._warn(timesteps, resource, free[resource], level, ram_used)

    def _warn(
        self, timesteps: int, resource: Resource, free: int, level: int, ram_used: int
    ) -> None:
        forecast = read_forecast(self._run_dir.preflight)
        part = None if forecast is None else forecast.largest_growing_part(resource)
        if resource == "disk":
            where = f"of the disk of {self._run_dir.root} is free"
            use = f"the run directory has {format_bytes(self._run_dir.size_bytes())}"
        else:
            where = "of this machine's RAM is free"
            use = f"this run uses {format_bytes(ram_used)}"
        threshold = self._thresholds[resource]
        assert threshold is not None
        parts = round(threshold * _GB / level)
        share = f"1/{parts} of " if parts > 1 else ""
        line = ""
        if part is not None:
            line = f"; of the forecast, {part.name} may take up to {format_bytes(part.bytes)}"
        self._events.emit(
            ResourceLow(
                timesteps=timesteps,
                resource=resource,
                free_bytes=free,
                threshold_bytes=level,
                plan_part=None if part is None else part.name,
                text=f"only {format_bytes(free)} {where}, less than {share}"
                f"monitoring.warn_{resource}_gb, {threshold:g} GB; {use}{line}",
            )
        )
