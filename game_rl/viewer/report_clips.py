"""The clips of a report: logged episodes of a run, which are played again, and stills of them."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageSequence

from game_rl.checkpoints.run_game import open_game
from game_rl.emulator.emulator import FRAMES_PER_SECOND, picture_frames
from game_rl.episodes.episode_files import KINDS, NO_POOL_STATE, Kind
from game_rl.episodes.logged_episodes import (
    EpisodeChoice,
    LoggedEpisode,
    LoggedEpisodes,
    read_logged_episodes,
)
from game_rl.errors import GameRLError
from game_rl.games.definition import Game
from game_rl.playback.clip import save_clip
from game_rl.playback.episode_replay import config_of, replayed
from game_rl.playback.shown_episode import hold_pictures, in_a_row
from game_rl.system.units import counted
from game_rl.viewer.shown_runs import ShownRun

_MOST_S = 60.0  # of an episode in a clip
_FROM_LAST: dict[Kind, str] = {
    "final": "the final evaluation",
    "evaluation": "the newest evaluation",
    "training": "the training",
}
"""Of which episodes the best and the worst are shown: of the first of these kinds that it has."""


@dataclass(frozen=True)
class ReportClip:
    """A clip with its heading.

    Attributes:
        about: what is seen.
        gif: content of a GIF; empty if it cannot be played.
        why_not: why it cannot.
    """

    title: str
    about: str
    gif: bytes
    why_not: str = ""


def early_best_worst(run: ShownRun) -> tuple[ReportClip, ...]:
    """Play a run's first episode again, and the best and the worst of its last evaluation.

    Of a run without an evaluation they are the best and the worst of its training. There are none
    if the run logs no episodes, or none that can be played again.
    """
    try:
        logged = read_logged_episodes(run.run_dir)
        chosen = list(_chosen(logged))
        if not chosen:
            return ()
        game = open_game(run.run_dir, run.config)
    except GameRLError as error:
        return (ReportClip("Clips", "", b"", str(error)),)
    return tuple(_clip(title, about, logged, game) for title, about, logged in chosen)


def _chosen(logged: LoggedEpisodes) -> Iterator[tuple[str, str, LoggedEpisodes]]:
    """Yield title, description and log of one episode each."""
    logged = EpisodeChoice(kinds=KINDS, only_playable=True).of(logged)
    logged = logged.at(np.flatnonzero(logged.rows["pool_state"] == NO_POOL_STATE))
    early = EpisodeChoice(most=1).of(logged)
    if len(early):
        yield "Early", f"Episode {early[0].number:,} of the training", early
    for kind in _FROM_LAST:
        found = EpisodeChoice(kinds=(kind,)).of(logged)
        if len(found):
            break
    if len(found) and kind != "training":
        found = EpisodeChoice(kinds=(kind,), first=found[-1].timesteps).of(found)
    if len(found) < 2:
        return
    order = np.argsort(found.rows["reward"], kind="stable")
    of = f"of {counted(len(found), 'episode')} of {_FROM_LAST[kind]}"
    yield "Best", f"The highest reward {of}", found.at(order[-1:])
    yield "Worst", f"The lowest reward {of}", found.at(order[:1])


def _clip(title: str, about: str, chosen: LoggedEpisodes, game: Game) -> ReportClip:
    about = f"{about}: {_result(chosen[0])}."
    try:
        return ReportClip(title, about, _played(chosen, game))
    except GameRLError as error:
        return ReportClip(title, about, b"", str(error))


def _result(episode: LoggedEpisode) -> str:
    words = [f"{counted(episode.length, 'timestep')} from {episode.start_state}"]
    if episode.success is not None:
        words.append("success" if episode.success else "no success")
    words.append(f"reward {episode.reward:.2f}")
    return ", ".join(words)


def _played(chosen: LoggedEpisodes, game: Game) -> bytes:
    """Return a GIF of the first minute of an episode.

    Raises:
        GameRLError: it cannot be played again, or plays in another way than it was logged.
    """
    frame_skip = config_of(chosen[0]).env.frame_skip
    seconds = picture_frames(frame_skip) / FRAMES_PER_SECOND
    shown = replayed(chosen, 0, game, hold=hold_pictures(frame_skip))
    pictures = in_a_row([shown], ("action", "reward"))
    with TemporaryDirectory() as folder:
        part = islice(pictures, int(_MOST_S / seconds))
        return save_clip(part, seconds, Path(folder) / "clip.gif").read_bytes()


def still_of(gif: bytes) -> bytes:
    """Return the last picture of a GIF as a PNG, for paper and for readers who want no motion.

    Raises:
        OSError: it is no GIF.
    """
    file = io.BytesIO()
    with Image.open(io.BytesIO(gif)) as pictures:
        for picture in ImageSequence.Iterator(pictures):
            last = picture.copy()
        last.convert("P", palette=Image.Palette.ADAPTIVE).save(file, format="PNG")
    return file.getvalue()
