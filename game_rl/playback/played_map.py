"""The maps of a game, joined from the screens of logged episodes, which are played again."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

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
from game_rl.places.place_counts import MapPoint, map_point
from game_rl.places.screen_map import ScreenMap, read_screen_map, screen_collector
from game_rl.playback.episode_replay import play_again

MOST_TIMESTEPS = 30_000
"""That are played again for a map at once: half a minute of a slow machine."""
_MOST_OF_WALKS = 12_000


def update_screen_map(
    run_dir: RunDir, game: Game, *, progress: Callable[[int, int], None]
) -> ScreenMap:
    """Add the screens of episodes since the last time to the map of a run, and save it.

    Nothing is played again that was in the map before.

    Args:
        game: the game of the run; it has a `place_screen`.
        progress: is told the timesteps that were played again, and their number in all.

    Raises:
        ReplayError: an episode does not play as it was logged.
        UsageError: the map cannot be written.
    """
    joined = read_screen_map(run_dir.place_screens)
    shown = game.definition.place_screen
    assert shown is not None
    joined.pixels = shown.pixels
    joined.names = game.definition.place_names
    logged = EpisodeChoice(kinds=KINDS, only_playable=True).of(read_logged_episodes(run_dir))
    logged = logged.at(np.flatnonzero(logged.rows["number"] > joined.episode))
    chosen = spread_over_run(logged)
    if not len(chosen):
        return joined
    total = int(chosen.rows["length"].sum())
    done = 0
    for index in range(len(chosen)):
        for _ in play_again(chosen, index, game, trackers=(screen_collector(joined),)):
            done += 1
            progress(done, total)
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
