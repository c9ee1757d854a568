"""A small exploration, for tests that need an archive."""

from pathlib import Path

from game_rl.config.schema import EnvConfig
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.games.definition import load_game
from tests.explore.explored_beacon import explore_some


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
    explore_some(root, game_path, settings, rounds=rounds, draws=False)
    return root
