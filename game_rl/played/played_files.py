"""The files of played episodes that a run learns from: found, checked, copied into its folder."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from game_rl.buffers.layout import pond_layout, total_bytes
from game_rl.config.learn_from import PlayedConfig
from game_rl.config.schema import RunConfig
from game_rl.config.values import run_at
from game_rl.emulator.emulator import Press
from game_rl.errors import GameFileError, TrainingError, UsageError
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.durable_files import new_directory, remove_directory, write_synced
from game_rl.files.pretrained import brought_episodes, is_packed_agent, run_name
from game_rl.files.run_dir import RunDir
from game_rl.game_check.recorded_episode import (
    RecordedEpisode,
    read_recorded_episode,
    recorded_timesteps,
    rounded_episode,
    usual_frame_skip,
)
from game_rl.games.definition import Game

MOST_EPISODES = 1_000
MOST_TIMESTEPS = 1_000_000
"""Limit of all played episodes together: 18 hours at a frame skip of 4."""

_KEY = "algorithm.learn_from.played.episodes"
_NAME_DIGITS = 4
_LONGEST_NAME = 80


@dataclass(frozen=True)
class PlayedFile:
    """A recorded episode with the file that it is in.

    Attributes:
        actions: index of the action of each timestep; of buttons, that to which they are rounded.
        presses: the buttons of each timestep as they were held; empty if actions were recorded.
    """

    path: Path
    episode: RecordedEpisode
    actions: tuple[int, ...]
    presses: tuple[tuple[Press, ...], ...]

    @property
    def n_timesteps(self) -> int:
        return len(self.actions)


def found_files(settings: PlayedConfig) -> list[Path]:
    """Return the files that the config names, in the order of their names.

    Raises:
        UsageError: a path, a pattern or a folder gives none, or they are too many.
    """
    found: list[Path] = []
    for pattern in settings.patterns:
        if is_packed_agent(pattern):
            files = brought_episodes(pattern)
            if not files:
                raise UsageError(
                    f"{_KEY}: {run_name(pattern)} is an agent that was packed without recorded "
                    "episodes; ask its author to push it again, name it in algorithm.teacher.run "
                    "if it is one of dqn or pqn, or in fork.run, or record episodes with game-rl "
                    "play GAME --record mine/1.json"
                )
        elif pattern.is_dir():
            files = sorted(pattern.glob("*.json"))
        elif pattern.is_file():
            files = [pattern]
        else:
            files = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_file())
        if not files:
            raise UsageError(
                f"{_KEY}: there is no file {pattern}; record episodes with game-rl play GAME "
                f"--record {quote(str(pattern.with_name('1.json')))}, or correct the path"
            )
        found += files
    found = list(dict.fromkeys(found))
    if len(found) > MOST_EPISODES:
        raise UsageError(
            f"{_KEY} names {len(found):,} files, and at most {MOST_EPISODES:,} can be learned "
            "from; name fewer"
        )
    return found


def copied_files(run_dir: RunDir) -> list[Path] | None:
    """Return the run's own copies in order; None if it has none yet."""
    return sorted(run_dir.played.glob("*.json")) if run_dir.played.is_dir() else None


def read_played(paths: Sequence[Path], game: Game, *, frame_skip: int) -> list[PlayedFile]:
    """Read episodes that a run with this frame skip can play again.

    Raises:
        UsageError: a file is no episode of the game, has another frame skip, or they are too long.
    """
    files = []
    for path in paths:
        try:
            episode = read_recorded_episode(path, game)
        except GameFileError as error:
            raise UsageError(f"{_KEY}: {error}") from None
        recorded = episode.frame_skip or usual_frame_skip(game)
        if episode.actions and recorded != frame_skip:
            raise UsageError(
                f"{_KEY}: {path} has an action every {recorded} frames, and the run one every "
                f"{frame_skip}; set env.frame_skip={recorded}, or record it with game-rl play, "
                "which keeps the buttons of every frame"
            )
        files.append(_at_frame_skip(path, episode, game, frame_skip))
    total = sum(file.n_timesteps for file in files)
    if total > MOST_TIMESTEPS:
        raise UsageError(
            f"{_KEY}: the episodes have {total:,} timesteps together, and at most "
            f"{MOST_TIMESTEPS:,} can be learned from; name fewer"
        )
    return files


def _at_frame_skip(path: Path, episode: RecordedEpisode, game: Game, frame_skip: int) -> PlayedFile:
    names = {name: index for index, name in enumerate(game.action_names)}
    rounded = rounded_episode(episode, game, frame_skip=frame_skip)
    at_frame_skip = episode.model_copy(update={"frame_skip": frame_skip})
    timesteps = recorded_timesteps(at_frame_skip, game)
    presses = tuple(each.presses for each in timesteps if each.presses is not None)
    return PlayedFile(path, episode, tuple(names[name] for name in rounded.actions), presses)


def played_files(config: RunConfig, game: Game, run_dir: RunDir | None) -> list[PlayedFile]:
    """Return the played episodes of a run, its own copies if it has some; none without the key.

    Args:
        run_dir: the folder of the run; None: that of a new run, whatever lies there.

    Raises:
        UsageError: see `found_files` and `read_played`.
    """
    settings = config.algorithm.played
    if settings is None:
        return []
    copies = None if run_dir is None else copied_files(run_dir)
    paths = found_files(settings) if copies is None else copies
    return read_played(paths, game, frame_skip=config.env.frame_skip)


def copy_files(files: Iterable[Path], run_dir: RunDir) -> None:
    """Copy files into a run's folder, which has none yet; they appear together.

    Raises:
        OSError: the disk fails.
    """
    with new_directory(run_dir.played) as folder:
        for number, path in enumerate(files):
            name = re.sub(r"[^\w.-]", "_", path.stem)[:_LONGEST_NAME]  # as storage takes it
            write_synced(folder / f"{number:0{_NAME_DIGITS}}_{name}.json", path.read_bytes())


def forget_files(run_dir: RunDir) -> None:
    """Delete the copies of a run directory in which a run starts over."""
    if run_dir.played.exists():
        remove_directory(run_dir.played)


@dataclass(frozen=True)
class PlayedSize:
    """How much has been played.

    Attributes:
        rows: timesteps and last frames.
        file_bytes: bytes of the files.
    """

    rows: int = 0
    file_bytes: int = 0


def played_size(config: RunConfig, game: Game) -> PlayedSize:
    """Return the size of a run's played episodes, or of those that it will have.

    Raises:
        UsageError: see `played_files`.
    """
    try:
        files = played_files(config, game, RunDir(config.run_dir))
    except UsageError:
        parent = None if config.fork is None else RunDir(run_at(config.fork.run)[0])
        if parent is None or copied_files(parent) is None:
            raise
        files = played_files(config, game, parent)  # from which the fork will have them
    try:
        file_bytes = sum(file.path.stat().st_size for file in files)
    except OSError as error:
        raise TrainingError(f"{error.filename}: {error.strerror}") from None
    return PlayedSize(sum(file.n_timesteps + 1 for file in files), file_bytes)


class PlayedFeature(Feature):
    """The played episodes that a run learns from."""

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of their packed frames, and what they take while they are played."""
        if run.demonstrated_rows:
            form = run.observation_format
            layout = pond_layout(
                form, capacity=run.demonstrated_rows, n_envs=1, n_actions=run.n_actions
            )
            yield Part("played episodes", total_bytes(layout))

    def standing_files(self, run: PlannedRun) -> Iterable[Part]:
        if run.played_bytes:
            yield Part("played episodes", run.played_bytes)
