"""Routes: the actions from the beginning of the episode to a cell, to be played again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.envs.episode_starts import first_beginning
from game_rl.errors import GameFileError, UsageError
from game_rl.explore.archive import Archive, CellRecord
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings
from game_rl.files.durable_files import write_atomic
from game_rl.games.definition import Game, load_game, unknown_name

BEST = "best"


@dataclass(frozen=True)
class Route:
    """A way from the beginning of the episode.

    Attributes:
        name: how a command names it.
        actions: index of the action of each timestep.
        cell: the cell at its end, as long as that is still the best way to the cell.
        term: the reward term that it was the first to earn.
    """

    name: str
    actions: bytes
    cell: CellRecord | None = None
    term: str | None = None


def find_route(archive: Archive, word: str) -> Route:
    """Return the route of a name: `best`, the number of a cell, or a reward term.

    Raises:
        UsageError: there is none.
    """
    if not archive.cells:
        raise UsageError("the exploration has found no cell yet; wait until its first round ends")
    if word == BEST:
        best = archive.best()
        return Route(word, best.way.whole(), cell=best)
    if word in archive.firsts:
        return Route(word, archive.firsts[word].whole(), term=word)
    if word.isdecimal():
        if int(word) < len(archive.cells):
            record = archive.cells[int(word)]
            return Route(word, record.way.whole(), cell=record)
        raise UsageError(
            f"there is no cell {int(word):,}: cells have the numbers 0 to "
            f"{len(archive.cells) - 1:,}"
        )
    if word in archive.earned:
        raise UsageError(
            f"reward term {word} was earned, but not on the way to any cell that was kept; use "
            f"--route {BEST} or the number of a cell on the sheet"
        )
    known = [BEST, *archive.firsts]
    raise UsageError(f"{unknown_name(word, 'route', known)}, or give the number of a cell")


def write_route(route: Route, game: Game, settings: ExploreSettings, path: Path) -> None:
    """Write a route as an episode that `check-game --recorded` plays."""
    drawn = first_beginning(game, settings.env, seed=settings.seed)
    episode = {
        "start_state": settings.start_state,
        "seed": settings.seed,
        "idle_frames": drawn.idle_frames,
        "game_seed": drawn.game_seed,
        "frame_skip": settings.env.frame_skip,
        "actions": action_names(route.actions, game),
    }
    write_atomic(path, json.dumps(episode) + "\n")


def action_names(actions: Sequence[int], game: Game) -> list[str]:
    return [game.action_names[action] for action in actions]


def explored_game(folder: ExploreDir, given: str | None = None) -> tuple[Game, ExploreSettings]:
    """Return the game that was explored, and how.

    Args:
        given: its game.yaml now, for example after a move; None for where it was.

    Raises:
        UsageError: the folder is not one of an exploration, or the ROM is another one.
        GameFileError: the game's file cannot be read.
    """
    saved = folder.read()
    try:
        game = load_game(saved.game if given is None else given)
    except GameFileError as error:
        if given is not None:
            raise
        raise GameFileError(f"{error}\nif the game was moved, name its file with --game") from None
    return game, folder.read_of(game).settings
