"""An exploration as its page shows it, kept up to date from the files that it leaves."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from game_rl.errors import GameRLError
from game_rl.explore.exploration_view import ExplorationView, RoundPoint
from game_rl.explore.explore_dir import ExploreDir, read_progress
from game_rl.explore.route import explored_game
from game_rl.games.place import Offsets
from game_rl.places.place_layers import place_counts_json

Json = dict[str, Any]
MOST_POINTS = 400
"""Points of a curve on the page, which is never wider in pixels."""
_SPEED_OVER_S = 60.0
_READ_WITHIN_S = 2.0  # of an archive of gigabytes, the page shows more at each look


class FollowedExploration:
    """An exploration and what was read of it; its methods may be called by several threads."""

    def __init__(self, root: Path) -> None:
        folder = ExploreDir(root)
        self.title = folder.read().game
        place: tuple[str, ...] | None = None
        offsets: Offsets = {}
        with suppress(GameRLError, OSError):  # without the game's file, there is no map
            game, _ = explored_game(folder)
            self.title = game.definition.title
            place = game.definition.place
            offsets = game.map_offsets()
        self._view = ExplorationView(folder, place, offsets)
        self._lock = threading.Lock()

    def summary(self) -> Json:
        """Read what is new, and return the numbers, the curves and the pictures there are."""
        with self._lock:
            self._view.refresh(within_s=_READ_WITHIN_S)
            view = self._view
            last = view.last
            points = _thinned(view.points)
            settings = view.saved.settings
            return {
                "kind": "exploration",
                "name": view.folder.root.absolute().name,
                "is_there": view.folder.root.is_dir(),
                "members": [],
                "state": view.state,
                "game": self.title,
                "start_state": settings.start_state,
                "has_rewards": bool(settings.cell),
                "rounds": len(view.points),
                "timesteps": last.timesteps,
                "frames": last.timesteps * settings.env.frame_skip,
                "seconds": last.seconds,
                "timesteps_per_s": _speed([(p.timesteps, p.seconds) for p in view.points]),
                "cells": last.cells,
                "places": last.places,
                "maps": last.maps,
                "reward": last.reward,
                "has_success": view.has_success,
                "curves": {
                    "timesteps": [point.timesteps for point in points],
                    "cells": [point.cells for point in points],
                    "places": [point.places for point in points],
                    "maps": [point.maps for point in points],
                    "reward": [point.reward for point in points],
                },
                "terms": [
                    {
                        "name": term.name,
                        "timesteps": term.timesteps,
                        "seconds": term.seconds,
                        "most": term.most,
                    }
                    for term in view.terms
                ],
                "pictures": {path.stem: path.stat().st_mtime_ns for path in self.pictures()},
                "commands": list(view.commands()),
            }

    def places(self) -> Json:
        """Return the map of visited places as JSON; empty if there is none."""
        with self._lock:
            view = self._view
            counts = view.place_counts_on_screens()
            side, _ = view.places.sides
            if counts is None:
                counts = view.place_counts()
                side = 1
            if counts is None:
                return {}
            return place_counts_json(counts, screens=view.folder.place_screens, side=side)

    def pictures(self) -> list[Path]:
        """Return the pictures that the page may show."""
        return exploration_pictures(self._view.folder.root)


def exploration_pictures(root: Path) -> list[Path]:
    """Return the pictures that an exploration has, the best route before the sheet of its cells."""
    folder = ExploreDir(root)
    return [path for path in (folder.best_picture, folder.sheet) if path.is_file()]


def exploration_brief(root: Path) -> Json:
    """Return what a row shows of an exploration in a folder: all but its archive is read for it."""
    folder = ExploreDir(root)
    settings = folder.read().settings
    rounds = sorted(read_progress(folder), key=lambda line: line.round)
    last = rounds[-1] if rounds else None
    newest: str | None = None
    with suppress(OSError):
        newest = datetime.fromtimestamp(folder.progress.stat().st_mtime, UTC).isoformat()
    picture: Json | None = None
    for path in exploration_pictures(root)[:1]:
        picture = {"name": path.stem, "at": path.stat().st_mtime_ns}
    return {
        "kind": "exploration",
        "state": folder.state,
        "cells": 0 if last is None else last.cells,
        "timesteps": 0 if last is None else last.timesteps,
        "timesteps_per_s": _speed([(line.timesteps, line.seconds) for line in rounds]),
        "best_reward": None if last is None or not settings.cell else last.reward,
        "last_event": newest,
        "picture": picture,
    }


def _speed(rounds: Sequence[tuple[int, float]]) -> float | None:
    """Return the timesteps a second of the last minute.

    Args:
        rounds: timesteps and seconds after each.
    """
    timesteps, seconds = rounds[-1] if rounds else (0, 0.0)
    earlier = (each for each in reversed(rounds) if each[1] <= seconds - _SPEED_OVER_S)
    timesteps_before, seconds_before = next(earlier, (0, 0.0))
    took = seconds - seconds_before
    return (timesteps - timesteps_before) / took if took > 0 else None


def _thinned(points: Sequence[RoundPoint]) -> list[RoundPoint]:
    """Return at most 400 points, the last one among them."""
    step = -(-len(points) // MOST_POINTS) or 1
    return list(points[::-step])[::-1]
