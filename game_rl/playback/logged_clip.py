"""A clip of logged episodes, which are played again for it; needs no torch."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from game_rl.emulator.emulator import FRAMES_PER_SECOND, picture_frames
from game_rl.episodes.logged_episodes import LoggedEpisodes
from game_rl.errors import UsageError
from game_rl.games.definition import Game
from game_rl.playback.clip import clip_writer, save_clip
from game_rl.playback.episode_replay import Watcher, config_of, replayed
from game_rl.playback.shown_episode import (
    OverlayItem,
    ShownEpisode,
    hold_pictures,
    in_a_row,
    side_by_side,
)


def record_logged(
    episodes: LoggedEpisodes,
    game: Game,
    output: Path,
    *,
    overlay: Collection[OverlayItem] = (),
    grid: bool = False,
    make_watcher: Callable[[], Watcher] | None = None,
) -> Path:
    """Write a clip of these episodes, which are played again, and return its path.

    Args:
        overlay: what is written below the screen.
        grid: whether the episodes are side by side.
        make_watcher: makes what says the values; None if nothing does.

    Raises:
        UsageError: an episode cannot be played again, or the suffix is neither .gif nor .mp4.
        ReplayError: an episode does not play as it was logged. Nothing is written.
    """
    clip_writer(output)
    skips = {config_of(episode).env.frame_skip for episode in episodes}
    if len(skips) > 1:
        raise UsageError(
            "these episodes have timesteps of different lengths "
            f"({', '.join(map(str, sorted(skips)))} frames); record them in clips of their own"
        )
    frame_skip = skips.pop()
    watcher = None if make_watcher is None else make_watcher()
    hold = hold_pictures(frame_skip)

    def shown() -> Iterator[ShownEpisode]:
        for index in range(len(episodes)):
            yield replayed(episodes, index, game, hold=hold, watcher=watcher)

    pictures = (side_by_side if grid else in_a_row)(shown(), overlay)
    return save_clip(pictures, picture_frames(frame_skip) / FRAMES_PER_SECOND, output)
