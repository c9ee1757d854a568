"""A small exploration, for tests that need an archive."""

import itertools
from pathlib import Path

from game_rl.config.schema import EnvConfig
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, SavedExploration
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.files.durable_files import write_atomic
from game_rl.games.definition import load_game


def explore(root: Path, game_path: str, *, rounds: int = 2, start_state: str) -> Path:
    """Explore a game for some rounds of six trips; return the folder."""
    game = load_game(game_path)
    settings = ExploreSettings(
        start_state=start_state,
        seed=0,
        cell=game.definition.cell_entries,
        prefer=game.definition.preferred,
        env=EnvConfig(frame_skip=8, max_episode_timesteps=None),
        trips=6,
        trip_timesteps=30,
        repeat=0.8,
        most_bytes=10**9,
    )
    root.mkdir()
    folder = ExploreDir(root)
    saved = SavedExploration(game=game_path, rom_sha256=game.rom.sha256, settings=settings)
    write_atomic(folder.saved, saved.model_dump_json())
    exploration = Exploration(folder, game, settings)
    with ExploringProcesses(game, settings, 1) as explorers:
        for _ in itertools.islice(exploration.rounds(explorers), rounds):
            pass
    return root
