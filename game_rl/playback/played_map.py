"""The maps of a game, joined from the screens of logged episodes, which are played again."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode
from game_rl.episodes.episode_files import KINDS
from game_rl.episodes.logged_episodes import EpisodeChoice, LoggedEpisodes, read_logged_episodes
from game_rl.errors import UsageError
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.games.place import Offsets, whole
from game_rl.games.variables import as_tuple
from game_rl.places.map_clip import Walk
from game_rl.places.place_counts import (
    MapId,
    MapPoint,
    PlaceCounts,
    map_point,
    timesteps_of,
)
from game_rl.places.screen_map import ScreenMap, read_screen_map, screen_collector
from game_rl.playback.episode_replay import play_again

MOST_TIMESTEPS = 30_000
"""That are played again for a map at once: half a minute of a slow machine; and as many again if
rooms have no screen."""
_ROUNDED = 127 / 128  # of a timestep of `PlaceCounts`, at least
_MOST_OF_WALKS = 12_000


def update_screen_map(
    run_dir: RunDir, game: Game, counts: PlaceCounts, *, progress: Callable[[int, int], None]
) -> ScreenMap:
    """Add the screens of episodes since the last time to the map of a run, and save it.

    Nothing is played again that was in the map before. Of the episodes, some are played that are
    spread over them all. If rooms that were visited have no screen then, further ones follow that
    may have been there.

    Args:
        game: the game of the run; it has a `place_screen`.
        counts: the places of the run.
        progress: is told the timesteps that were played again, and their number in all.

    Raises:
        ReplayError: an episode does not play as it was logged.
        UsageError: the map cannot be written.
    """
    joined = read_screen_map(run_dir.place_screens)
    shown = game.definition.place_screen
    assert shown is not None
    joined.pixels = shown.pixels
    joined.names = game.map_names()
    logged = EpisodeChoice(kinds=KINDS, only_playable=True).of(read_logged_episodes(run_dir))
    logged = logged.at(np.flatnonzero(logged.rows["number"] > joined.episode))
    chosen = spread_over_run(logged)
    if not len(chosen):
        return joined
    total = int(chosen.rows["length"].sum())
    done = 0

    def play(index: int) -> None:
        nonlocal done
        for _ in play_again(logged, index, game, trackers=(screen_collector(joined),)):
            done += 1
            progress(done, total)

    played = np.isin(logged.rows["number"], chosen.rows["number"])
    for index in np.flatnonzero(played):
        play(int(index))
    most = total + MOST_TIMESTEPS
    times = PlaceTimes.of(counts)
    while (found := likely_there(logged, times, joined.maps(), ~played)) is not None:
        total += int(logged.rows["length"][found])
        if total > most:
            break
        played[found] = True
        play(found)
    joined.episode = int(logged.rows["number"].max())
    try:
        write_atomic(run_dir.place_screens, joined.to_bytes())
    except OSError as error:
        raise UsageError(f"{run_dir.place_screens} cannot be written: {error.strerror}") from None
    return joined


def spread_over_run(
    episodes: LoggedEpisodes, most_timesteps: int = MOST_TIMESTEPS
) -> LoggedEpisodes:
    """Return some that are spread evenly over all, of so many timesteps and at least one."""
    kept: list[int] = []
    left = most_timesteps
    for index in _halving(len(episodes)):
        length = int(episodes.rows["length"][index])
        if length > left and kept:
            break
        kept.append(index)
        left -= length
    return episodes.at(np.array(sorted(kept), np.int64))


class PlaceTimes(NamedTuple):
    """When the places of a run were found, in timesteps.

    Attributes:
        boundaries: at which visits were added to the counts, ascending.
        found: when each place of a map was found.
    """

    boundaries: NDArray[np.int64]
    found: Mapping[MapId, Sequence[NDArray[np.int64]]]

    @classmethod
    def of(cls, counts: PlaceCounts) -> Self:
        boundaries: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        by_map: dict[MapId, list[NDArray[np.int64]]] = {}
        for sheet in counts.sheets():
            found, last = (timesteps_of(n[sheet.visits > 0]) for n in (sheet.found, sheet.last))
            boundaries += [found, last]
            by_map.setdefault(sheet.map_id, []).append(found)
        return cls(np.unique(np.concatenate(boundaries)), by_map)


def likely_there(
    episodes: LoggedEpisodes,
    times: PlaceTimes,
    seen: Collection[MapId],
    among: NDArray[np.bool_],
) -> int | None:
    """Return the index of the episode that was most likely on maps that were visited, not seen.

    It is the one during which most places of these maps were found; of equals, the first. None if
    there is no such episode, or every map was seen.

    Args:
        among: bool [n], the episodes that may be chosen.
    """
    unseen = [each for map_id in times.found.keys() - set(seen) for each in times.found[map_id]]
    if not unseen or not among.any():
        return None
    found = np.sort(np.concatenate(unseen))
    after = np.searchsorted(times.boundaries, episodes.rows["timesteps"])
    ends = times.boundaries[after.clip(max=len(times.boundaries) - 1)]
    begun = np.searchsorted(found, episodes.first_timesteps() * _ROUNDED, side="left")
    there = np.where(among, np.searchsorted(found, ends, side="right") - begun, 0)
    index = int(there.argmax())
    return index if there[index] > 0 else None


def _halving(n: int) -> Iterator[int]:
    """Yield the last of `n` indices, then always those in the middle of what is between others."""
    seen: set[int] = set()
    if n:
        seen.add(n - 1)
        yield n - 1
    parts = 2
    while len(seen) < n:
        for odd in range(1, parts, 2):
            index = odd * n // parts
            if index not in seen:
                seen.add(index)
                yield index
        parts *= 2


class _WalkCollector(EpisodeTracker):
    """Notes where the player is after each timestep."""

    def __init__(
        self,
        names: tuple[str, ...],
        offsets: Offsets,
        points: list[MapPoint],
        parts: EnvParts,  # noqa: ARG002
    ) -> None:
        self.variables = frozenset(names)
        self._names = names
        self._offsets = offsets
        self._points = points

    def step(self, episode: RunningEpisode) -> None:
        numbers = (as_tuple(episode.values[name])[0] for name in self._names)
        self._points.append(map_point(tuple(map(whole, numbers)), self._offsets))


def played_walks(
    run_dir: RunDir, game: Game, *, progress: Callable[[int, int], None]
) -> list[Walk]:
    """Return where agents were in some episodes that are spread over a run, played again.

    Args:
        game: the game of the run; it has a `place`.
        progress: as for `update_screen_map`.

    Raises:
        ReplayError: an episode does not play as it was logged.
    """
    place = game.definition.place
    assert place is not None
    choice = EpisodeChoice(kinds=KINDS, only_playable=True)
    chosen = spread_over_run(choice.of(read_logged_episodes(run_dir)), _MOST_OF_WALKS)
    total = int(chosen.rows["length"].sum()) if len(chosen) else 0
    offsets = game.map_offsets()
    found: list[Walk] = []
    done = 0
    for index in range(len(chosen)):
        points: list[MapPoint] = []
        collector = partial(_WalkCollector, place, offsets, points)
        for _ in play_again(chosen, index, game, trackers=(collector,)):
            done += 1
            progress(done, total)
        found.append(Walk(int(chosen.rows["timesteps"][index]), points))
    return found
