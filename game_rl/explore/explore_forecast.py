"""What an exploration takes of memory and disk, said before it begins."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from game_rl.explore.archive import Archive
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.trip import Pace
from game_rl.system.units import MIB, format_bytes

_BASE64 = 4 / 3

# Measured on beacon, with cells of 16 and of 2 pixels, after 2.3 and 0.2 million timesteps. There,
# 0.19 and 0.34 of the timesteps of a trip from the beginning found a cell that the trip did not
# know. The finds for the archive grow with the square of that, and with this power of the
# timesteps; the cells, which run out, with these.
_FINDS = 6.4
_FINDS_BY_TIMESTEPS = 0.86
_CELLS = 187
_CELLS_BY_FINDS = 3.3
_CELLS_BY_TIMESTEPS = 2 / 3
# What a cell takes beside its state, with its ways and neighbours in the main process and its score
# in each of the others; what a round takes while it is added; what the file has of a find beside
# the state, and of a timestep.
_CELL_BYTES = 2_400
_KNOWN_CELL_BYTES = 350
_ROUND_BYTES = 16 * MIB
_FIND_LINE_BYTES = 180
_LINE_BYTES = 0.7
# The maps of the game that are joined from screens: beacon's 24 rooms in memory, and the most. The
# file is compressed; those of beacon and seasons have 0.03 to 0.14 MB.
_USUAL_MAP_BYTES = 8 * MIB
_USUAL_MAP_FILE_BYTES = 140_000
_MOST_MAP_BYTES = 160 * MIB


@dataclass(frozen=True)
class Taken:
    """What an exploration takes: memory of all processes, and disk."""

    memory_bytes: int
    disk_bytes: int

    @property
    def in_words(self) -> str:
        sizes = format_bytes(self.memory_bytes), format_bytes(self.disk_bytes)
        return f"{sizes[0]} of memory and {sizes[1]} of disk"


@dataclass(frozen=True)
class ExploreForecast:
    """What an exploration takes, and what is free for it.

    Attributes:
        pace: how fast the game was played, and what it found.
        timesteps: that it will play, about.
        expected: if it goes on finding as it does in beacon.
        most: once all states are there that have room.
        free: what there is for it, its own part included.
    """

    pace: Pace
    timesteps: int
    expected: Taken
    most: Taken
    free: Taken

    @property
    def verdict(self) -> Literal["fits", "tight", "does_not_fit"]:
        """`does_not_fit` if what is expected has no room, `tight` if the most has none."""
        if _exceeds(self.expected, self.free):
            return "does_not_fit"
        return "tight" if _exceeds(self.most, self.free) else "fits"

    @property
    def in_words(self) -> str:
        return (
            f"about {self.timesteps:,} timesteps, {self.expected.in_words}; at most "
            f"{self.most.in_words}, and {format_bytes(self.free.memory_bytes)} and "
            f"{format_bytes(self.free.disk_bytes)} are free"
        )


def _exceeds(taken: Taken, free: Taken) -> bool:
    return taken.memory_bytes > free.memory_bytes or taken.disk_bytes > free.disk_bytes


class _Found(NamedTuple):
    finds: float
    cells: float


def _found(share: float, timesteps: int) -> _Found:
    """Return what so many timesteps find if so large a share of them finds something in a trip."""
    finds = min(timesteps, _FINDS * share**2 * timesteps**_FINDS_BY_TIMESTEPS)
    cells = _CELLS * share**_CELLS_BY_FINDS * timesteps**_CELLS_BY_TIMESTEPS
    return _Found(finds, min(finds, cells))


def forecast_of(
    settings: ExploreSettings,
    archive: Archive,
    pace: Pace,
    *,
    now: Taken,
    available: Taken,
    n_processes: int,
    timesteps: int,
    has_map: bool = False,
) -> ExploreForecast:
    """Return what an exploration takes.

    The states in memory stay below their limit. The file has at most twice as many, as text and,
    beside it for a moment, the file without those that are needed no more.

    Args:
        archive: what was found already.
        now: what the exploration takes before it begins.
        available: what is free beside that.
        timesteps: that it will play.
        has_map: whether maps of the game are joined from screens.
    """
    before = _found(pace.finds, archive.timesteps)
    after = _found(pace.finds, archive.timesteps + timesteps)
    finds = after.finds - before.finds
    cells = min(finds, after.cells - before.cells)
    lines = max(0.0, now.disk_bytes - _BASE64 * archive.written_bytes)
    lines += finds * _FIND_LINE_BYTES + timesteps * _LINE_BYTES

    def taken(new_states: float, new_finds: float, maps: Taken) -> Taken:
        """Return what is taken with so many new states in memory, and so many in the file."""
        states = min(settings.most_bytes, archive.state_bytes + new_states * pace.state_bytes)
        held = max(0.0, states - archive.state_bytes) / pace.state_bytes
        each = _CELL_BYTES + n_processes * _KNOWN_CELL_BYTES
        memory = now.memory_bytes + states - archive.state_bytes + max(held, cells) * each
        memory += min(_ROUND_BYTES, new_finds * pace.state_bytes)
        written = archive.written_bytes + new_finds * pace.state_bytes
        limit = 2 * settings.most_bytes
        disk = _BASE64 * written + lines
        if written > limit:
            disk = _BASE64 * (limit + states) + 2 * lines
        if has_map:
            memory += maps.memory_bytes
            disk += maps.disk_bytes
        return Taken(round(memory), round(disk))

    return ExploreForecast(
        pace=pace,
        timesteps=timesteps,
        expected=taken(cells, finds, Taken(_USUAL_MAP_BYTES, _USUAL_MAP_FILE_BYTES)),
        most=taken(timesteps, timesteps, Taken(_MOST_MAP_BYTES, _MOST_MAP_BYTES)),
        free=Taken(
            available.memory_bytes + now.memory_bytes, available.disk_bytes + now.disk_bytes
        ),
    )
