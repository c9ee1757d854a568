"""An exploration as terminal, page, report and status show it, read from its files bit by bit."""

import math
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

import numpy as np

from game_rl.errors import UsageError
from game_rl.explore.explore_dir import ExploreDir, read_progress
from game_rl.files.json_lines import located_lines
from game_rl.files.saved import parse_json
from game_rl.games.cell import Cell, CoarseVariable
from game_rl.games.place import Offsets
from game_rl.places.place_counts import PlaceCounts, Visits
from game_rl.system.units import counted

_STATE = re.compile(rb'"state":"[^"]*"')  # nearly all of a line, and base64 has no quotes

CoarsePlace = tuple[int, ...]
"""The variables of a `place`, each divided by its `per`."""


class CellPlaces:
    """Where the cells of an exploration are.

    Args:
        entries: the variables of a cell.
        place: the variables that say where the player is; None if nobody knows.

    Attributes:
        names: the variables of the place; None where the cells do not have them all.
        sides: of a coarse place: `per` of x and of y.
    """

    def __init__(self, entries: Sequence[CoarseVariable], place: Sequence[str] | None) -> None:
        by_name = {entry.variable: number for number, entry in enumerate(entries)}
        self.names: tuple[str, ...] | None = None
        self._indices: tuple[int, ...] = ()
        if place and all(name in by_name for name in place):
            self.names = tuple(place)
            self._indices = tuple(by_name[name] for name in place)
        pers = [entries[index].per for index in self._indices]
        self.sides = (pers[-2] if len(pers) > 1 else pers[-1], pers[-1]) if pers else (1, 1)

    @property
    def has_squares(self) -> bool:
        """Whether the cells say where they are, and their places are squares."""
        return self.names is not None and self.sides[0] == self.sides[1]

    def of(self, cell: Cell) -> CoarsePlace | None:
        return None if self.names is None else tuple(cell[index] for index in self._indices)

    def counts(self, seen: Mapping[CoarsePlace, int], offsets: Offsets) -> PlaceCounts | None:
        """Return how many trips were at each place, in units of coarse places."""
        if self.names is None:
            return None
        width, height = self.sides
        coarse = {number: (x // width, y // height) for number, (x, y) in offsets.items()}
        counts = PlaceCounts(self.names, coarse)
        visited = {place: times for place, times in seen.items() if times}
        places = np.array(list(visited), np.int64).reshape(len(visited), len(self.names))
        counts.add(Visits(places, np.array(list(visited.values()), np.int64)))
        return counts


@dataclass(frozen=True, slots=True)
class RoundPoint:
    """What there was after a round.

    Attributes:
        seconds: time of all rounds.
        places, maps: different ones; 0 where the cells do not say where they are.
        reward: of the best way.
    """

    timesteps: int
    seconds: float
    cells: int
    places: int
    maps: int
    reward: float


@dataclass(slots=True)
class EarnedTerm:
    """A reward term that was earned.

    Attributes:
        timesteps, seconds: of the exploration, when it was earned for the first time.
        most: the largest sum in an episode.
        has_route: whether `--route NAME` leads there.
    """

    name: str
    timesteps: int
    seconds: float
    most: float
    has_route: bool = False


@dataclass(slots=True)
class _Found:
    """What the lines of the archive say so far."""

    end: int = 0
    numbers: dict[Cell, int] = field(default_factory=dict)
    places: list[CoarsePlace | None] = field(default_factory=list)
    different: set[CoarsePlace] = field(default_factory=set)
    maps: set[CoarsePlace] = field(default_factory=set)
    seen: dict[CoarsePlace, int] = field(default_factory=dict)
    points: list[RoundPoint] = field(default_factory=list)
    terms: dict[str, EarnedTerm] = field(default_factory=dict)
    timesteps: int = 0
    reward: float = 0.0
    has_success: bool = False


class ExplorationView:
    """What the files of an exploration say; `refresh` reads what is new.

    Args:
        place: the variables that say where the player is; None if nobody knows.
        offsets: x and y in the world of each map's place 0, 0.

    Attributes:
        folder: the folder of the exploration.
        saved: what is explored, and how.
        places: where its cells are.
    """

    def __init__(
        self, folder: ExploreDir, place: Sequence[str] | None = None, offsets: Offsets | None = None
    ) -> None:
        self.folder = folder
        self.saved = folder.read()
        self.places = CellPlaces(self.saved.settings.cell, place)
        self._offsets = offsets or {}
        self._found = _Found()
        self._file = 0

    def refresh(self, *, within_s: float = math.inf) -> None:
        """Read what was written since the last time.

        Args:
            within_s: time after which the rest is left for the next call.

        Raises:
            UsageError: a line is not one of an archive.
        """
        path = self.folder.archive
        until_s = time.monotonic() + within_s
        try:
            stat = path.stat()
        except FileNotFoundError:
            return
        if stat.st_ino != self._file or stat.st_size < self._found.end:  # it was compacted
            self._found = _Found()
            self._file = stat.st_ino
        progress = [(line.round, line.seconds) for line in read_progress(self.folder)]
        rounds = [number for number, _ in progress]
        for offset, line in located_lines(path, start=self._found.end):
            try:
                content = parse_json(_STATE.sub(b'"state":""', line))
                number = len(self._found.points) + bool(content["chosen"])
                at = bisect_right(rounds, number) - 1
                self._add(content, progress[at][1] if at >= 0 else 0.0)
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise UsageError(
                    f"{path}, at byte {offset:,}: this is not a line of an archive ({error}); "
                    "restore the file from a copy"
                ) from None
            self._found.end = offset + len(line)
            if time.monotonic() > until_s:
                return

    def _add(self, line: Mapping[str, Any], seconds: float) -> None:
        found = self._found
        for each in line["finds"]:
            cell = tuple(each["cell"])
            if cell not in found.numbers:
                found.numbers[cell] = len(found.numbers)
                place = self.places.of(cell)
                found.places.append(place)
                if place is not None:
                    found.different.add(place)
                    found.maps.add(place[:-2])
            found.reward = max(found.reward, each["reward"])
            found.has_success = found.has_success or each["success"]
        for number, times in line["seen"]:
            place = found.places[number]
            if place is not None:
                found.seen[place] = found.seen.get(place, 0) + times
        found.timesteps += line["timesteps"]
        for name, most in line["earned"].items():
            term = found.terms.setdefault(name, EarnedTerm(name, found.timesteps, seconds, most))
            term.most = most
        for name in line.get("firsts", ()):
            found.terms[name].has_route = True
        if line["chosen"]:
            found.points.append(
                RoundPoint(
                    timesteps=found.timesteps,
                    seconds=seconds,
                    cells=len(found.numbers),
                    places=len(found.different),
                    maps=len(found.maps),
                    reward=found.reward,
                )
            )

    @property
    def points(self) -> Sequence[RoundPoint]:
        """What there was after each round."""
        return self._found.points

    @property
    def terms(self) -> list[EarnedTerm]:
        """The reward terms that were earned, the first one first."""
        return sorted(self._found.terms.values(), key=lambda term: term.timesteps)

    @property
    def last(self) -> RoundPoint:
        """What there is now."""
        none = RoundPoint(0, 0.0, len(self._found.numbers), 0, 0, 0.0)
        return self._found.points[-1] if self._found.points else none

    @property
    def has_success(self) -> bool:
        """Whether a way ends with a success."""
        return self._found.has_success

    @property
    def is_exploring(self) -> bool | None:
        """Whether a process explores; None if this user cannot find out."""
        return self.folder.is_locked

    @property
    def state(self) -> str:
        return self.folder.state

    def place_counts(self) -> PlaceCounts | None:
        """Return how many trips were at each place; None where the cells do not say it."""
        if not self._found.seen:
            return None
        return self.places.counts(self._found.seen, self._offsets)

    def place_counts_on_screens(self) -> PlaceCounts | None:
        """Return how many trips were at each place, to be drawn on the screens of places.

        Maps lie beside each other if their offsets are multiples of the places' sides; if not, each
        lies alone, where its places and its screens agree. None where there are no screens.
        """
        if not self._found.seen or not self.places.has_squares:
            return None
        if not self.folder.place_screens.is_file():
            return None
        side, _ = self.places.sides
        offsets = self._offsets
        if any(x % side or y % side for x, y in offsets.values()):
            offsets = {}
        return self.places.counts(self._found.seen, offsets)

    def commands(self) -> Iterator[str]:
        """Yield what can be done next."""
        root = quote(str(self.folder.root))
        yield f"game-rl explore --resume --output {root}"
        if self.saved.settings.cell:
            yield f"game-rl record {root} --route best"
            best = quote(str(self.folder.best))
            yield f"game-rl check-game {quote(self.saved.game)} --recorded {best}"
        yield f"game-rl explore --output {root} --keep CELL --name NAME"

    def facts_of_map(self, counts: PlaceCounts) -> str:
        """Return what the map has, in words."""
        width, height = self.places.sides
        size = f" of {width} x {height}" if width * height > 1 else ""
        return f"{counted(counts.n_places, 'place')}{size}, by the trips that visited them"
