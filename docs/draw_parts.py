"""Draws the pictures of docs/how-to/parts.md: `python docs/draw_parts.py [FOLDER]`.

`game-rl check-game` plays docs/how-to/parts/episode.json, and each part of the game is drawn at two
moments, as a PNG of its name.
"""

import sys
from pathlib import Path

from game_rl.game_check.game_check import check_game
from game_rl.game_check.recorded_episode import read_recorded_episode
from game_rl.game_check.sheets import write_parts_sheet
from game_rl.games.definition import load_game

FOLDER = Path(__file__).parent / "how-to" / "parts"


def main(folder: Path) -> None:
    game = load_game(str(FOLDER / "game.yaml"))
    recorded = read_recorded_episode(FOLDER / "episode.json", game)
    check = check_game(game, seed=0, timesteps=1, recorded=recorded)
    for name in game.definition.parts:
        moments = [check.moments[0], check.moments[6]]
        write_parts_sheet(moments, game, folder / f"{name}.png", names=[name])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
