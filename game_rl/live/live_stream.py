"""The live screens of one or several runs, read once for all clients, and as messages to each.

A message holds only what has changed: the length of what follows (uint32, little-endian) and a zlib
stream. That stream holds the length of a JSON text (uint32, little-endian), the text, and blocks of
bytes in the order in which the text names them. A block of a screen is its packed pixels
(`LiveLayout.packing`), or their exclusive or with those that the same client got last of that env.
"""

import asyncio
import json
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.files.run_dir import RunDir
from game_rl.live.live_file import LiveLayout, LiveReader, LiveScreen

_LEVEL = 1  # deflate's fastest: most of a difference is zeros
_EMPTY: dict[str, Any] = {"screens": []}

Key = tuple[str, int]
"""Name of a run, empty if there is one alone, and number of an env."""


class FrameEncoder:
    """Makes the messages of one client, and remembers what it has got."""

    def __init__(self) -> None:
        self._sequences: dict[Key, tuple[int, bool]] = {}
        self._pixels: dict[Key, NDArray[np.uint8]] = {}
        self._layouts: dict[str, LiveLayout] = {}
        self._awaited: dict[Key, int] = {}
        self._learns_from: dict[str, int] = {}

    def message(
        self,
        screens: Iterable[tuple[str, LiveScreen]],
        layouts: Mapping[str, LiveLayout],
        *,
        large: Key | None,
        learns_from: Mapping[str, int] | None = None,
    ) -> bytes | None:
        """Return a message on what has changed, or None if nothing has.

        Args:
            screens: the newest ones, each with the name of its run.
            learns_from: timesteps from which a run's network learns now; 0 while its agents play.
            large: the env whose parts of the observation are sent as well.
        """
        new = {run: each for run, each in layouts.items() if self._layouts.get(run) is not each}
        for key in [key for key in self._sequences if key[0] in new]:
            del self._sequences[key], self._pixels[key]
        changed = [(run, each) for run, each in screens if self._is_due((run, each.env), each)]
        learning = {
            run: timesteps
            for run, timesteps in (learns_from or {}).items()
            if self._learns_from.get(run, 0) != timesteps
        }
        if not new and not changed and not learning:
            return None
        blocks: list[bytes] = []
        text: dict[str, Any] = {
            "screens": [self._screen(run, s, large, blocks) for run, s in changed]
        }
        if learning:
            text["learns_from"] = learning
            self._learns_from |= learning
        if new:
            own = {"version", "run_id", "slot", "slot_bytes", "values", "values_bytes"}
            text["layouts"] = [
                {"run": run, **each.model_dump(mode="json", exclude=own)}
                for run, each in new.items()
            ]
            self._layouts |= new
        return framed(text, blocks)

    def _is_due(self, key: Key, screen: LiveScreen) -> bool:
        """Whether it is new; the policy's values follow it within a moment, and it waits for them.

        It waits only up to the next look, as there may be none.
        """
        if self._sequences.get(key) == _at(screen):
            return False
        waited = self._awaited.get(key)
        self._awaited[key] = screen.sequence
        return screen.value is not None or waited == screen.sequence

    def _screen(
        self, run: str, screen: LiveScreen, large: Key | None, blocks: list[bytes]
    ) -> dict[str, Any]:
        key = run, screen.env
        before = self._pixels.get(key)
        self._pixels[key] = screen.packed
        self._sequences[key] = _at(screen)
        pixels = screen.packed if before is None else screen.packed ^ before
        blocks.append(pixels.tobytes())
        parts = []
        if key == large:
            for name, array in screen.parts.items():
                blocks.append(np.ascontiguousarray(array).tobytes())
                parts.append({"name": name, "dtype": array.dtype.name, "shape": array.shape})
        return {
            "run": run,
            "env": screen.env,
            "pixels": "key" if before is None else "xor",
            "bytes": pixels.nbytes,
            "parts": parts,
            **_numbers(screen),
        }


def _at(screen: LiveScreen) -> tuple[int, bool]:
    """What tells a screen from the one before; the policy's values may come later than the rest."""
    return screen.sequence, screen.value is not None


def framed(text: Mapping[str, Any], blocks: Iterable[bytes]) -> bytes:
    """Return one message."""
    head = json.dumps(text, separators=(",", ":")).encode()
    body = zlib.compress(len(head).to_bytes(4, "little") + head + b"".join(blocks), _LEVEL)
    return len(body).to_bytes(4, "little") + body


HEARTBEAT = framed(_EMPTY, ())
"""A message without content, so that a client that is gone is noticed."""


def _numbers(screen: LiveScreen) -> dict[str, Any]:
    values = screen.action_values
    return {
        "timestep": screen.timestep,
        "episode": screen.episode,
        "episode_timestep": screen.episode_timestep,
        "start_state": screen.start_state,
        "action": screen.action,
        "episode_reward": _rounded(screen.episode_reward),
        "reward_terms": {name: _rounded(value) for name, value in screen.reward_terms.items()},
        "variables": {name: _shown(value) for name, value in screen.variables.items()},
        "place": screen.place,
        "map_at": screen.map_at,
        "value": None if screen.value is None else _rounded(screen.value),
        "action_values": None if values is None else [_rounded(value) for value in values],
    }


def _shown(value: float | list[float]) -> float | list[float | None] | None:
    return [_rounded(each) for each in value] if isinstance(value, list) else _rounded(value)


def _rounded(value: float) -> float | None:
    """Return six digits, which a person reads; JSON has no infinite numbers."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


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
    learns_from: int = 0
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
            self.learns_from = self.reader.learns_from()

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = None
        self.screens = []
        self.learns_from = 0


class FrameHub:
    """Reads the live files of the runs that somebody watches.

    A client waits for `newer` and gets the newest screens of that time, so a slow one misses
    screens and holds up nobody.
    """

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
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

    def learns_from(self, run: str) -> int:
        """Return the timesteps that the run's network learns from now; 0 while its agents play."""
        source = self._sources.get(run)
        return 0 if source is None else source.learns_from

    def layout(self, run: str) -> LiveLayout | None:
        source = self._sources.get(run)
        return None if source is None or source.reader is None else source.reader.layout

    async def _read(self) -> None:
        while True:
            for source in list(self._sources.values()):
                source.look(time.monotonic())
            self._looks += 1
            looked = self._looked
            self._looked = asyncio.Event()
            looked.set()
            # twice as many looks as the fastest run writes
            rates = [s.reader.layout.fps for s in self._sources.values() if s.reader is not None]
            await asyncio.sleep(1 / min(_MOST_FPS, 2 * max(rates)) if rates else _IDLE_S)
