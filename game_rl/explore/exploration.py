"""An exploration: its rounds one after the other, and its files.

All trips of a round begin from the archive as it was before the round, each with a seed of its own,
and what they found is added in their order. So the archive is the same for any number of processes.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from game_rl.explore.archive import Archive, Way
from game_rl.explore.exploration_view import CellPlaces, CoarsePlace
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, RoundProgress, read_progress
from game_rl.explore.explore_pictures import cell_moment, png_of, shown_cells, way_moments
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.explore.route import BEST, find_route, write_route
from game_rl.files.durable_files import rename, sync_directory, synced_file, write_atomic
from game_rl.files.json_lines import JsonLines, located_lines
from game_rl.games.definition import Game
from game_rl.places.screen_map import ScreenMap, read_screen_map

MOST_NEW_SCREENS = 400
"""Screens that are added to the maps each time, at most."""


class Exploration:
    """Explores in rounds; hold the folder's lock.

    Args:
        folder: where it is kept; it continues what is there.

    Attributes:
        folder, game, settings: as given.
        archive: all that was found so far.
        new_terms: the reward terms that the last round was the first to earn.
        seconds: time of all rounds, those of earlier sittings included.

    Raises:
        UsageError: the archive in the folder is damaged.
    """

    def __init__(self, folder: ExploreDir, game: Game, settings: ExploreSettings) -> None:
        self.folder = folder
        self.game = game
        self.settings = settings
        if folder.archive.exists():
            end = sum(len(line) for _, line in located_lines(folder.archive))
            os.truncate(folder.archive, end)  # a kill may have left a part of a line
        folder.compacting.unlink(missing_ok=True)
        self.archive = Archive.read(folder.archive, settings.most_bytes)
        self.new_terms: tuple[str, ...] = ()
        self.seconds = max((line.seconds for line in read_progress(folder)), default=0.0)
        self._drawn: Way | None = None
        self._places = CellPlaces(settings.cell, game.definition.place)
        self._joined: ScreenMap | None = None
        self._on_map: set[CoarsePlace] = set()

    @property
    def has_map(self) -> bool:
        """Whether maps of the game are joined from the screens of cells."""
        return self.game.definition.place_screen is not None and self._places.has_squares

    def rounds(self, explorers: ExploringProcesses) -> Iterator[Archive]:
        """Explore round after round, and yield the archive once the round is in the file."""
        settings = self.settings
        archive = self.archive
        before_s = time.monotonic() - self.seconds
        if not archive.cells:
            self._append(archive.begin(explorers.beginning()))
        while True:
            if archive.written_bytes > 2 * settings.most_bytes:
                self._compact()
            seed = (settings.seed, archive.rounds)
            chosen = archive.choose(settings.trips, np.random.default_rng(seed))
            trips = explorers.trips(chosen, seed, archive.scores())
            earned = set(archive.earned)
            self._append(archive.add_round(chosen, trips))
            self.new_terms = tuple(sorted(set(archive.earned) - earned))
            self.seconds = time.monotonic() - before_s
            self._note_progress()
            yield archive

    def _append(self, line: str) -> None:
        with JsonLines(self.folder.archive) as file:
            file.append(line)

    def _compact(self) -> None:
        """Write the archive's file anew, without the states that are not needed any more."""
        path = self.folder.archive
        new = self.folder.compacting
        try:
            with synced_file(new) as file:
                for line in self.archive.compacted(path):
                    file.write(line.encode() + b"\n")
        except OSError:
            new.unlink(missing_ok=True)  # a full disk has no room for half a file
            raise
        rename(new, path)
        sync_directory(path.parent)
        self.archive.written_bytes = self.archive.state_bytes

    def _note_progress(self) -> None:
        line = RoundProgress(
            round=self.archive.rounds,
            seconds=round(self.seconds, 3),
            timesteps=self.archive.timesteps,
            cells=len(self.archive.cells),
            reward=self.archive.best().score.reward,
        )
        with JsonLines(self.folder.progress) as file:
            file.append(line.model_dump_json())

    def write_best(self) -> Path:
        """Write the best way as an episode that `check-game --recorded` plays; return the file."""
        write_route(find_route(self.archive, BEST), self.game, self.settings, self.folder.best)
        return self.folder.best

    def draw(self, explorers: ExploringProcesses) -> None:
        """Draw the sheet, the maps and, if it is new, the best way, also written to `best.json`.

        Raises:
            ReplayError: the best way does not play as it was found.
        """
        cells = shown_cells(self.archive.cells, self.settings)
        screens = explorers.screens([record.state for record in cells])
        write_atomic(self.folder.sheet, png_of(list(map(cell_moment, cells, screens))))
        self._join_screens(explorers)
        best = self.archive.best().way
        if not self.settings.cell or best is self._drawn:
            return
        self.write_best()
        moments = way_moments(explorers.gains(best.whole()))
        if moments:
            write_atomic(self.folder.best_picture, png_of(moments))
        self._drawn = best

    def _join_screens(self, explorers: ExploringProcesses) -> None:
        """Add the screens of new places to the maps, one for each place that has a state."""
        if not self.has_map:
            return
        shown = self.game.definition.place_screen
        assert shown is not None
        places = self._places
        new: dict[CoarsePlace, bytes] = {}
        for record in self.archive.cells:
            place = places.of(record.cell)
            if record.state and place is not None and place not in self._on_map:
                new.setdefault(place, record.state)
        if not new:
            return
        waiting = list(new)
        chosen = waiting
        if len(waiting) > MOST_NEW_SCREENS:
            chosen = [waiting[n * len(new) // MOST_NEW_SCREENS] for n in range(MOST_NEW_SCREENS)]
        joined = self._joined or read_screen_map(self.folder.place_screens)
        joined.pixels = shown.pixels
        joined.names = self.game.map_names()
        for screen in explorers.map_screens([new[place] for place in chosen]):
            joined.add(*screen)
        self._on_map.update(chosen)
        self._joined = joined
        if joined.maps():
            write_atomic(self.folder.place_screens, joined.to_bytes())
