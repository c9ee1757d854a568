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


def explore_beacon(root: Path, *, rounds: int) -> Exploration:
    """Explore some rounds more, and draw what was found."""
    root.mkdir(exist_ok=True)
    folder = ExploreDir(root)
    saved = SavedExploration(game="beacon", rom_sha256=BEACON.rom.sha256, settings=SETTINGS)
    write_saved(folder.saved, saved)
    exploration = Exploration(folder, BEACON, SETTINGS)
    with ExploringProcesses(BEACON, SETTINGS, 1) as explorers:
        for _ in itertools.islice(exploration.rounds(explorers), rounds):
            pass
        exploration.draw(explorers)
    return exploration
