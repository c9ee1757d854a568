"""Says when a run has taken most of the memory or disk that its preflight forecasts, or all."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from game_rl.events import PlanPassed
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import Resource, SavedForecast, read_forecast
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
            f"{_NAMES[resource]}: {format_bytes(used)}, {used / planned:.1%} of the forecast of "
            f"{format_bytes(planned)}"
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
