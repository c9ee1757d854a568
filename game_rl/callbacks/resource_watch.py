"""Warnings when little disk or RAM is left, each with the plan's line that grows most."""

from game_rl.events import ResourceLow
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import Resource, read_forecast
from game_rl.system.units import format_bytes

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
                text=f"only {format_bytes(free)} {where}, less than "
                f"{self._level_words(resource, level)}; {use}{line}",
            )
        )

    def _level_words(self, resource: Resource, level: int) -> str:
        threshold = self._thresholds[resource]
        assert threshold is not None
        parts = round(threshold * _GB / level)
        share = f"1/{parts} of " if parts > 1 else ""
        return f"{share}monitoring.warn_{resource}_gb, {threshold:g} GB"
