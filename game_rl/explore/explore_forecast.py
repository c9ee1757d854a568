"""What an exploration takes at most of memory and disk, said before it begins."""

from dataclasses import dataclass
from typing import Literal

from game_rl.explore.archive import Archive
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.trip import Pace
from game_rl.system.units import MIB, format_bytes

_BASE64 = 4 / 3
# Measured on beacon, with cells of 16 and of 2 pixels, 11,000 and 18,000 of them: what a cell takes
# beside its state, with its ways and neighbours in the main process and its score in each of the
# others; what more ways take for each timestep; what a round takes while it is added; and the lines
# of the file without the states.
_CELL_BYTES = 2_400
_KNOWN_CELL_BYTES = 350
_WAYS_BYTES = 3.0
_LINE_BYTES = 3.7
_ROUND_BYTES = 16 * MIB
_TIGHT = 0.9


@dataclass(frozen=True)
class ExploreForecast:
    """What an exploration takes at most, and what is free for it.

    Attributes:
        pace: how fast the game was played, and how large its states were.
        timesteps: that it will play, about.
        memory_bytes, disk_bytes: at most, of all processes and of the folder.
        free_memory_bytes, free_disk_bytes: what there is for it, its own part included.
    """

    pace: Pace
    timesteps: int
    memory_bytes: int
    disk_bytes: int
    free_memory_bytes: int
    free_disk_bytes: int

    @property
    def verdict(self) -> Literal["fits", "tight", "does_not_fit"]:
        share = max(
            self.memory_bytes / max(1, self.free_memory_bytes),
            self.disk_bytes / max(1, self.free_disk_bytes),
        )
        if share > 1:
            return "does_not_fit"
        return "tight" if share > _TIGHT else "fits"

    @property
    def in_words(self) -> str:
        return (
            f"at most {format_bytes(self.memory_bytes)} of memory "
            f"({format_bytes(self.free_memory_bytes)} free) and "
            f"{format_bytes(self.disk_bytes)} of disk ({format_bytes(self.free_disk_bytes)} free); "
            f"a state takes {format_bytes(self.pace.state_bytes)}"
        )


@dataclass(frozen=True)
class ExploreNow:
    """What there is before the rounds begin.

    Attributes:
        memory_bytes: of all processes of the exploration.
        file_bytes: of the folder.
        available_memory_bytes, available_disk_bytes: free beside that.
    """

    memory_bytes: int
    file_bytes: int
    available_memory_bytes: int
    available_disk_bytes: int


def forecast_of(
    settings: ExploreSettings,
    archive: Archive,
    pace: Pace,
    now: ExploreNow,
    *,
    n_processes: int,
    timesteps: int,
) -> ExploreForecast:
    """Return what an exploration takes at most.

    The states in memory stay below their limit. The file has at most twice as many, as text, and
    beside it the one that is written without what is needed no more. No timestep finds more than
    one state.

    Args:
        archive: what was found already.
        timesteps: that it will play.
    """
    most_finds = timesteps * pace.state_bytes
    states = min(settings.most_bytes, archive.state_bytes + most_finds)
    cells = states / pace.state_bytes
    new_cells = max(0.0, cells - sum(1 for record in archive.cells if record.state))
    each = _CELL_BYTES + n_processes * _KNOWN_CELL_BYTES
    memory = now.memory_bytes + (states - archive.state_bytes) + new_cells * each
    memory += timesteps * _WAYS_BYTES + min(_ROUND_BYTES, most_finds)
    written = archive.written_bytes + most_finds
    limit = 2 * settings.most_bytes
    if written > limit:
        written = limit + settings.most_bytes
    lines = max(0.0, now.file_bytes - _BASE64 * archive.written_bytes) + timesteps * _LINE_BYTES
    return ExploreForecast(
        pace=pace,
        timesteps=timesteps,
        memory_bytes=round(memory),
        disk_bytes=round(_BASE64 * written + lines),
        free_memory_bytes=now.available_memory_bytes + now.memory_bytes,
        free_disk_bytes=now.available_disk_bytes + now.file_bytes,
    )
