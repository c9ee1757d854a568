"""The live screens of one or several runs, read once for all clients."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from game_rl.files.run_dir import RunDir
from game_rl.live.live_file import LiveReader, LiveScreen
from game_rl.live.live_layout import LiveLayout

WANT_EVERY_S = 2.0
_OPEN_EVERY_S = 1.0
_MOST_FPS = 30.0
_IDLE_S = 0.5


@dataclass
class _Source:
    """One run's live file, opened anew for each session of the run."""

    run_dir: RunDir
    clients: int = 0
    reader: LiveReader | None = None
    screens: list[LiveScreen] = field(default_factory=list)
    wanted_at: float = float("-inf")
    opened_at: float = float("-inf")

    def look(self, now: float) -> None:
        if self.reader is not None and now - self.wanted_at >= WANT_EVERY_S:
            if self.reader.is_current:
                self.reader.want()
                self.wanted_at = now
            else:
                self.close()
        if self.reader is None and now - self.opened_at >= _OPEN_EVERY_S:
            self.opened_at = now
            self.wanted_at = float("-inf")
            self.reader = LiveReader.open(self.run_dir)
            if self.reader is not None:
                self.reader.want()
                self.wanted_at = now
        if self.reader is not None:
            self.screens = self.reader.read()

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = None
        self.screens = []


class FrameHub:
    """Reads the live files of the runs that somebody watches.

    A client waits for `newer` and gets the newest screens of that time, so a slow one misses
    screens and holds up nobody.

    Args:
        clock: seconds, which only grow.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sources: dict[str, _Source] = {}
        self._clock = clock
        self._looks = 0
        self._looked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self, runs: Mapping[str, RunDir]) -> None:
        """Read these runs from now on; each name stays with one run."""
        for name, run_dir in runs.items():
            self._sources.setdefault(name, _Source(run_dir)).clients += 1
        if self._task is None:
            self._task = asyncio.create_task(self._read())

    def leave(self, runs: Iterable[str]) -> None:
        """Undo `join`; a run that nobody watches is no longer read."""
        for name in runs:
            source = self._sources[name]
            source.clients -= 1
            if not source.clients:
                source.close()
                del self._sources[name]
        if not self._sources and self._task is not None:
            self._task.cancel()
            self._task = None

    async def newer(self, look: int) -> int:
        """Wait until the files were read after that look, and return the number of the newest."""
        while self._looks <= look:
            await self._looked.wait()
        return self._looks

    def screens(self, run: str) -> list[LiveScreen]:
        """Return the newest screens of a run; empty if it writes none."""
        source = self._sources.get(run)
        return [] if source is None else source.screens

    def layout(self, run: str) -> LiveLayout | None:
        source = self._sources.get(run)
        return None if source is None or source.reader is None else source.reader.layout

    async def _read(self) -> None:
        while True:
            for source in list(self._sources.values()):
                source.look(self._clock())
            self._looks += 1
            looked = self._looked
            self._looked = asyncio.Event()
            looked.set()
            await asyncio.sleep(self._pause_s())

    def _pause_s(self) -> float:
        """Return the time between two looks: twice as many as the fastest run writes."""
        rates = [s.reader.layout.fps for s in self._sources.values() if s.reader is not None]
        return 1 / min(_MOST_FPS, 2 * max(rates)) if rates else _IDLE_S
