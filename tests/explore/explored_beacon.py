"""A small exploration of beacon in a folder, as `game-rl explore` leaves it."""

import itertools
from pathlib import Path

from game_rl.config.schema import EnvConfig
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, SavedExploration
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.files.durable_files import write_saved
from game_rl.games.definition import load_game

BEACON = load_game("beacon")
SETTINGS = ExploreSettings(
    start_state="shore",
    seed=2,
    cell=BEACON.definition.cell_entries,
    prefer=BEACON.definition.preferred,
    env=EnvConfig(frame_skip=8, max_episode_timesteps=None),
    trips=16,
    trip_timesteps=60,
    repeat=0.8,
    most_bytes=10**9,
)


def explore_some(
    root: Path, game_name: str, settings: ExploreSettings, *, rounds: int, draws: bool
) -> Exploration:
    """Explore a game for some rounds more.

    Args:
        draws: whether to draw what was found.
    """
    game = load_game(game_name)
    root.mkdir(exist_ok=True)
    folder = ExploreDir(root)
    saved = SavedExploration(game=game_name, rom_sha256=game.rom.sha256, settings=settings)
    write_saved(folder.saved, saved)
    exploration = Exploration(folder, game, settings)
    with ExploringProcesses(game, settings, 1) as explorers:
        for _ in itertools.islice(exploration.rounds(explorers), rounds):
            pass
        if draws:
            exploration.draw(explorers)
    return exploration


def explore_beacon(root: Path, *, rounds: int) -> Exploration:
    """Explore some rounds more, and draw what was found."""
    return explore_some(root, "beacon", SETTINGS, rounds=rounds, draws=True)
