"""`gymnasium.make("game_rl/duel-v0")`: every bundled game, with the defaults of a run config.

`import game_rl` calls this. Since 1.0, Gymnasium looks up no entry points, so that import is
needed. This module imports nothing else of ours, because every worker and command pays for it.
"""

from pathlib import Path

import gymnasium

_GAMES = Path(__file__).parents[1] / "games"


def register_bundled_games() -> None:
    """Register `game_rl/NAME-v0` for each bundled game that is not registered yet."""
    for file in sorted(_GAMES.glob("*/game.yaml")):
        name = file.parent.name
        identifier = f"game_rl/{name}-v0"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                id=identifier,
                entry_point="game_rl.envs.bundled_env:make_bundled_env",
                kwargs={"game": name},
            )
