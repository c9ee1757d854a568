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
from game_rl.playback.clip import last_of_mp4, save_clip
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


@dataclass(frozen=True)
class ChosenEpisode:
    """A logged episode that is shown.

    Attributes:
        about: which episode it is, and how it ended.
        logged: this one episode.
    """

    title: str
    about: str
    logged: LoggedEpisodes


def early_best_worst(run: ShownRun) -> tuple[ReportClip, ...]:
    """Play a run's first episode again, and the best and the worst of its last evaluation.

    Of a run without an evaluation they are the best and the worst of its training. There are none
    if the run logs no episodes, or none that can be played again.
    """
    try:
        logged = read_logged_episodes(run.run_dir)
        evaluation = last_evaluated(logged)
        of = _FROM_LAST[evaluation[0].kind] if len(evaluation) else ""
        chosen = [*first_episode(logged), *best_and_worst(evaluation, of=of)]
        if not chosen:
            return ()
        game = open_game(run.run_dir, run.config)
    except GameRLError as error:
        return (ReportClip("Clips", "", b"", str(error)),)
    return tuple(_clip(each, game) for each in chosen)


def first_episode(logged: LoggedEpisodes) -> Iterator[ChosenEpisode]:
    """Yield the first episode of a training, if it is logged."""
    early = EpisodeChoice(most=1).of(_shown_again(logged))
    if len(early):
        yield _chosen("Early", f"Episode {early[0].number:,} of the training", early)


def best_and_worst(evaluation: LoggedEpisodes, *, of: str) -> Iterator[ChosenEpisode]:
    """Yield the best and the worst episode of an evaluation, if it has two.

    Args:
        of: name of the evaluation.
    """
    found = _shown_again(evaluation)
    if len(found) < 2:
        return
    order = np.argsort(found.rows["reward"], kind="stable")
    among = f"of {counted(len(found), 'episode')} of {of}"
    yield _chosen("Best", f"The highest reward {among}", found.at(order[-1:]))
    yield _chosen("Worst", f"The lowest reward {among}", found.at(order[:1]))


def last_evaluated(logged: LoggedEpisodes) -> LoggedEpisodes:
    """Return the episodes of a run's last evaluation; without one, those of its training."""
    shown = _shown_again(logged)
    for kind in _FROM_LAST:
        found = EpisodeChoice(kinds=(kind,)).of(shown)
        if len(found):
            break
    if len(found) and kind != "training":
        found = EpisodeChoice(kinds=(kind,), first=found[-1].timesteps).of(found)
    return found


def _shown_again(logged: LoggedEpisodes) -> LoggedEpisodes:
    """Return the episodes from start states that can be played again."""
    logged = EpisodeChoice(kinds=KINDS, only_playable=True).of(logged)
    return logged.at(np.flatnonzero(logged.rows["pool_state"] == NO_POOL_STATE))


def _chosen(title: str, which: str, logged: LoggedEpisodes) -> ChosenEpisode:
    return ChosenEpisode(title, f"{which}: {_result(logged[0])}.", logged)


def _clip(chosen: ChosenEpisode, game: Game) -> ReportClip:
    with TemporaryDirectory() as folder:
        try:
            file = save_episode(chosen.logged, game, Path(folder) / "clip.gif", most_s=_MOST_S)
        except GameRLError as error:
            return ReportClip(chosen.title, chosen.about, b"", str(error))
        return ReportClip(chosen.title, chosen.about, file.read_bytes())


def _result(episode: LoggedEpisode) -> str:
    words = [f"{counted(episode.length, 'timestep')} from {episode.start_state}"]
    if episode.success is not None:
        words.append("success" if episode.success else "no success")
    words.append(f"reward {episode.reward:.2f}")
    return ", ".join(words)


def save_episode(chosen: LoggedEpisodes, game: Game, output: Path, *, most_s: float) -> Path:
    """Write a clip of the beginning of a logged episode, and return its path.

    Args:
        chosen: the episode alone.
        most_s: length of the clip, at most.

    Raises:
        GameRLError: it cannot be played again, or plays in another way than it was logged.
    """
    frame_skip = config_of(chosen[0]).env.frame_skip
    seconds = picture_frames(frame_skip) / FRAMES_PER_SECOND
    shown = replayed(chosen, 0, game, hold=hold_pictures(frame_skip))
    pictures = in_a_row([shown], ("action", "reward"))
    return save_clip(islice(pictures, int(most_s / seconds)), seconds, output)


def still_of(clip: bytes, suffix: str) -> bytes:
    """Return the last picture of a clip as a PNG, for paper and for readers who want no motion.

    Args:
        suffix: `.gif` or `.mp4`.

    Raises:
        OSError: it is no such clip, or is damaged.
        UsageError: the package is missing that reads an MP4.
    """
    if suffix == ".mp4":
        last = last_of_mp4(clip)
    else:
        with Image.open(io.BytesIO(clip)) as pictures:
            for picture in ImageSequence.Iterator(pictures):
                last = picture.copy()
    file = io.BytesIO()
    last.convert("P", palette=Image.Palette.ADAPTIVE).save(file, format="PNG")
    return file.getvalue()
