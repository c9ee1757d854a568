"""How often the envs of a run were at each place: counted, added up, kept in `places.npz`.

Each env counts for itself while the run is played. In the sum, the places of a map lie on sheets of
32 x 32, each of which takes memory once the player was on it. A sheet also knows when each place
was found, and when it was visited last: at the end of which rollout, to 1 in 128.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.features.feature import LOGS, Feature, Part, PlannedRun
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Blob, CheckpointFile, Natural, Saved
from game_rl.games.place import Offsets, whole
from game_rl.games.variables import Values

SHEET_SIDE = 32
MOST_SHEETS = 8_192
"""Sheets of a run, 64 MiB; timesteps at places beyond them count as `elsewhere`."""

PICTURES_OF_A_RUN = 20
"""Pictures of the map in TensorBoard, at equal intervals of a run."""
DRAWN_BLOCKS = 128
"""Blocks of 128 x 128 pixels of screens that such a picture is drawn from at most."""

_MOST_VISITS = 2**32 - 1
_SIGNIFICANT_BITS = 8  # of the upper half of a float32
_KEYS = "sheets"
_VISITS = "visits"
_FOUND = "found"
_LAST = "last"
_ABOUT = "about"

MapId = tuple[int, ...]
"""The variables of a place before its x and y, which say on which map it is."""


class MapPoint(NamedTuple):
    """A place on a layer: in the world, if its map lies there.

    Attributes:
        map_id: the map; None for the world.
    """

    map_id: MapId | None
    x: int
    y: int


def map_point(place: tuple[int, ...], offsets: Offsets) -> MapPoint:
    """Return where a place is.

    Args:
        offsets: x and y in the world of each map's place 0, 0.
    """
    *ids, x, y = place if len(place) > 1 else (*place, 0)
    if len(ids) == 1 and ids[0] in offsets:
        right, down = offsets[ids[0]]
        return MapPoint(None, x + right, y + down)
    return MapPoint(tuple(ids), x, y)


class Visits(NamedTuple):
    """Places and how often the player was at each.

    Attributes:
        places: int64 [n, variables of `place`].
        counts: int64 [n].
    """

    places: NDArray[np.int64]
    counts: NDArray[np.int64]


class PlaceTally(EpisodeTracker):
    """Counts the timesteps of one env by the place where they ended, over all its episodes.

    It holds one entry for each different place since the last `take`.

    Args:
        names: the variables that say where the player is.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.variables = frozenset(names)
        self._place_of: Callable[[Values], Any] = itemgetter(*names)
        self._counts: dict[Any, int] = {}

    @classmethod
    def of(cls, parts: EnvParts) -> Self | None:
        place = parts.game.definition.place
        return None if place is None else cls(place)

    def step(self, episode: RunningEpisode) -> None:
        place = self._place_of(episode.values)
        self._counts[place] = self._counts.get(place, 0) + 1

    def take(self) -> Visits:
        """Return what was counted, and count from 0 again; numbers are rounded down."""
        counts = self._counts
        self._counts = {}
        tuples = counts if len(self.names) > 1 else [(place,) for place in counts]
        places = [[whole(number) for number in place] for place in tuples]
        return Visits(
            np.array(places, np.int64).reshape(len(counts), len(self.names)),
            np.fromiter(counts.values(), np.int64, len(counts)),
        )


def take_visits(env: GameEnv) -> Visits | None:
    """Return where timesteps of an env ended since the last call; None if it does not count."""
    tally = env.tracker(PlaceTally)
    return None if tally is None else tally.take()


class SavedPlaces(Saved):
    """The counts in a checkpoint."""

    npz: Blob
    """What `PlaceCounts.to_bytes` returned."""


PLACES_FILE = CheckpointFile(
    name="places.json",
    words="visited places",
    model=SavedPlaces,
    fork="unless its counters are new",
)


class _About(Saved):
    place: Annotated[tuple[str, ...], Field(min_length=1)]
    offsets: dict[int, tuple[int, int]]
    since: Natural
    elsewhere: Natural
    until: Natural = 0


class Sheet(NamedTuple):
    """The counts of 32 x 32 places of a map.

    Attributes:
        map_id: the map.
        x, y: coordinates of its first place.
        visits: uint32 [32, 32]; rows are y, downwards.
        found, last: uint16 [32, 32], for `timesteps_of`, the first and the last visit; 0 where
            nobody was, and where it is unknown.
    """

    map_id: MapId
    x: int
    y: int
    visits: NDArray[np.uint32]
    found: NDArray[np.uint16]
    last: NDArray[np.uint16]


class _Sheet(NamedTuple):
    """As a `Sheet`; its timesteps are the upper halves of float32 numbers."""

    visits: NDArray[np.uint32]
    found: NDArray[np.uint16]
    last: NDArray[np.uint16]

    @classmethod
    def empty(cls) -> Self:
        shape = (SHEET_SIDE, SHEET_SIDE)
        return cls(
            np.zeros(shape, np.uint32), np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
        )


def _upper_half(timesteps: int) -> np.uint16:
    shift = max(timesteps.bit_length() - _SIGNIFICANT_BITS, 0)
    exact = np.float32(timesteps >> shift << shift)
    return np.uint16(exact.view(np.uint32) >> 16)


def timesteps_of(upper_halves: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return the timesteps of a sheet's visits, int64, rounded down to 8 significant bits."""
    whole = upper_halves.astype(np.uint32) << 16
    return whole.view(np.float32).astype(np.int64)


class PlaceCounts:
    """How often the player was at each place, over all envs of a run.

    A place is the map's variables, if there are any, then x and y; a single variable is x.

    Args:
        names: the variables that say where the player is.
        offsets: x and y in the world of each map's place 0, 0.
        since: timestep from which on they are counted.

    Attributes:
        elsewhere: timesteps at places for which there was no sheet left.
        until: timestep up to which they were counted; 0 if that is unknown.
    """

    def __init__(self, names: tuple[str, ...], offsets: Offsets, *, since: int = 0) -> None:
        self.names = names
        self.offsets = offsets
        self.since = since
        self.elsewhere = 0
        self.until = 0
        self._sheets: dict[tuple[int, ...], _Sheet] = {}

    def add(self, found: Visits, *, until: int = 0) -> None:
        """Add what an env has counted.

        Args:
            until: timestep of the run at which it is added; 0 if that is unknown.
        """
        self.until = max(self.until, until)
        if not len(found.counts):
            return
        places = found.places
        if places.shape[1] == 1:
            places = np.pad(places, ((0, 0), (0, 1)))
        xy = places[:, -2:]
        tops = np.concatenate((places[:, :-2], xy[:, ::-1] // SHEET_SIDE), axis=1)
        keys, sheet_of = np.unique(tops, axis=0, return_inverse=True)
        cells = xy[:, 1] % SHEET_SIDE * SHEET_SIDE + xy[:, 0] % SHEET_SIDE
        in_order = np.argsort(sheet_of, kind="stable")
        ends = np.searchsorted(sheet_of[in_order], np.arange(1, len(keys)))
        for key, rows in zip(keys.tolist(), np.split(in_order, ends), strict=True):
            self._add_to(tuple(key), cells[rows], found.counts[rows])

    def _add_to(
        self, key: tuple[int, ...], cells: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> None:
        sheet = self._sheets.get(key)
        if sheet is None:
            if len(self._sheets) == MOST_SHEETS:
                self.elsewhere += int(counts.sum())
                return
            sheet = self._sheets[key] = _Sheet.empty()
        visits = sheet.visits.ravel()  # views: the sheet is changed
        now = _upper_half(self.until)
        is_new = visits[cells] == 0
        sheet.found.ravel()[cells[is_new]] = now
        sheet.last.ravel()[cells] = now
        added = visits.astype(np.int64)
        np.add.at(added, cells, counts)
        visits[:] = added.clip(max=_MOST_VISITS)

    @property
    def timesteps(self) -> int:
        """Timesteps that were counted, those elsewhere included."""
        found = sum(int(sheet.visits.sum(dtype=np.int64)) for sheet in self._sheets.values())
        return found + self.elsewhere

    @property
    def n_places(self) -> int:
        """Number of different places."""
        return sum(int(np.count_nonzero(sheet.visits)) for sheet in self._sheets.values())

    def sheets(self) -> Iterator[Sheet]:
        """Yield the sheets, those of each map together."""
        for key in sorted(self._sheets):
            *map_id, row, column = key
            x = column * SHEET_SIDE
            y = row * SHEET_SIDE
            own = self._sheets[key]
            yield Sheet(tuple(map_id), x, y, own.visits, own.found, own.last)

    def to_bytes(self) -> bytes:
        """Return the content of `places.npz`; equal counts give equal bytes."""
        about = _About(
            place=self.names,
            offsets=self.offsets,
            since=self.since,
            elsewhere=self.elsewhere,
            until=self.until,
        )
        keys = sorted(self._sheets)
        n_columns = max(len(self.names), 2)
        sheets = [self._sheets[key] for key in keys]
        shape = (len(keys), SHEET_SIDE, SHEET_SIDE)
        arrays: Mapping[str, NDArray[np.generic]] = {
            _KEYS: np.array(keys, np.int64).reshape(len(keys), n_columns),
            _VISITS: np.array([sheet.visits for sheet in sheets], np.uint32).reshape(shape),
            _FOUND: np.array([sheet.found for sheet in sheets], np.uint16).reshape(shape),
            _LAST: np.array([sheet.last for sheet in sheets], np.uint16).reshape(shape),
            _ABOUT: np.frombuffer(about.model_dump_json().encode(), np.uint8),
        }
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, **arrays)
        return file.getvalue()


def parse_place_counts(content: bytes) -> PlaceCounts:
    """Return the counts that `PlaceCounts.to_bytes` wrote.

    Raises:
        ValueError: the content is no such file, or is damaged.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            keys, visits, text = (file[name] for name in (_KEYS, _VISITS, _ABOUT))
            if _LAST in file:
                found, last = (file[name] for name in (_FOUND, _LAST))
            else:  # of an earlier version: nobody knows when
                found, last = (np.zeros(visits.shape, np.uint16) for _ in range(2))
        about = _About.model_validate_json(text.tobytes())
    except (KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"it is not a file of visited places ({error})") from None
    except ValidationError as error:
        raise ValueError(f"its description is damaged ({error.error_count()} faults)") from None
    shape = (len(keys), max(len(about.place), 2))
    is_whole = keys.dtype == np.int64 and keys.shape == shape
    for array, dtype in ((visits, np.uint32), (found, np.uint16), (last, np.uint16)):
        is_whole &= array.dtype == dtype and array.shape == (len(keys), SHEET_SIDE, SHEET_SIDE)
    if not is_whole:
        raise ValueError("its arrays have the wrong shape or type")
    if len(keys) > MOST_SHEETS or not visits.any(axis=(1, 2)).all():
        raise ValueError("it has too many sheets, or empty ones")
    counts = PlaceCounts(about.place, about.offsets, since=about.since)
    counts.elsewhere = about.elsewhere
    counts.until = about.until
    sheets = map(_Sheet, visits, found, last)
    counts._sheets = {tuple(key): sheet for key, sheet in zip(keys.tolist(), sheets, strict=True)}
    return counts


# Measured on beacon and seasons, whose places are pixels: bytes of a place in places.npz, and of
# the file without any; of a picture of it in TensorBoard, from 16 kB at the beginning to 89 kB with
# all of beacon's screens and flags; of `place_screens.npz` of beacon, which `game-rl places` adds;
# of a place in a worker that counts it. How many there are, and how many sheets they are on,
# depends on the game's world: the 24 rooms of beacon have 600 sheets. Agents often return to old
# places.
_SAVED_PLACE_BYTES = 6.5
_FILE_BYTES = 1_000
_PICTURE_BYTES = 60_000
_SCREENS_FILE_BYTES = 130_000
_COUNTED_PLACE_BYTES = 250
# of a picture with 40 flags, from the largest `place_screens.npz` or from beacon's: 26 to 32 MiB
_DRAWING_BYTES = 32 << 20
_USUAL_SHEETS = 600
_USUAL_PLACES = 100_000
_TIMESTEPS_OF_A_NEW_PLACE = 4
_SHEET_BYTES = 8 * SHEET_SIDE**2
_BASE64_FACTOR = 4 / 3


class PlacesFeature(Feature):
    """The map of visited places, of games that name a `place`."""

    file = PLACES_FILE

    def fetched(self, run_dir: RunDir, checkpoint: Path, paths: Collection[str]) -> None:  # noqa: ARG002
        file = checkpoint / PLACES_FILE.name
        if file.exists():
            saved = SavedPlaces.model_validate_json(file.read_bytes())
            write_atomic(run_dir.places, saved.npz)

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of the sheets, and of what the workers count between two boundaries."""
        if not run.has_places:
            return ()
        n_envs = run.config.env.n_envs
        each = run.config.algorithm.n_steps
        if each is None:
            each = FREQUENT_BOUNDARIES_TIMESTEPS // n_envs + 1
        counted = n_envs * each * _COUNTED_PLACE_BYTES
        return (Part("visited places", _USUAL_SHEETS * _SHEET_BYTES + counted),)

    def pause_memory(self, run: PlannedRun) -> Iterable[Part]:
        if run.has_places and run.config.logging.tensorboard:
            yield Part("drawing the visited places", _DRAWING_BYTES)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:
        return round(self.file_bytes(run, timesteps) * _BASE64_FACTOR)

    def logs(self, run: PlannedRun) -> Iterable[Part]:
        """Return the size of the files at the run's end, and of the pictures in TensorBoard."""
        if not run.has_places:
            return ()
        pictures = 0
        if run.config.logging.tensorboard:
            pictures = min(PICTURES_OF_A_RUN, run.boundaries) * _PICTURE_BYTES
        files = self.file_bytes(run, run.final_timesteps) + _SCREENS_FILE_BYTES
        return (Part(LOGS, files + pictures),)

    def file_bytes(self, run: PlannedRun, timesteps: int) -> int:
        """Return the size of `places.npz` after so many timesteps."""
        if not run.has_places:
            return 0
        places = min(timesteps // _TIMESTEPS_OF_A_NEW_PLACE, _USUAL_PLACES)
        return round(places * _SAVED_PLACE_BYTES) + _FILE_BYTES
