"""The figures and the pictures of docs/games/seasons.md, made again.

python -m tests.games.play_seasons [--episodes 10] [--pictures docs/games]
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.games.seasons_player import LEVELS, Seasons, episode, random_player, scripted_player

CLIP_TIMESTEPS = range(30, 115)
SHEET_TIMESTEPS = (40, 130)
CLIP_FRAME_MS = 67
LONGEST_EPISODE = 500
SCREEN_WIDTH, SCREEN_HEIGHT, MARGIN = 160, 144, 2


def write_pictures(seasons: Seasons, folder: Path) -> None:
    """Each level twice, and a clip of each."""
    width, height = SCREEN_WIDTH + MARGIN, SCREEN_HEIGHT + MARGIN
    sheet = Image.new("RGB", (len(LEVELS) * width, len(SHEET_TIMESTEPS) * height), (128,) * 3)
    clip, rng = [], np.random.default_rng(0)
    for column, level in enumerate(LEVELS):
        seasons.begin(level, 1)
        for timestep in range(1, LONGEST_EPISODE):
            seasons.step(scripted_player(seasons, rng), render=True)
            seen = Image.fromarray(np.array(seasons.pyboy.screen.ndarray[:, :, :3]))
            if timestep in SHEET_TIMESTEPS:
                sheet.paste(seen, (column * width, SHEET_TIMESTEPS.index(timestep) * height))
            if timestep in CLIP_TIMESTEPS:
                clip.append(seen.quantize(32))
            if seasons["result"]:
                break
    sheet.quantize(64).save(folder / "seasons_levels.png", optimize=True)
    settings: dict[str, Any] = {"duration": CLIP_FRAME_MS, "loop": 0, "optimize": True}
    clip[0].save(folder / "seasons.gif", save_all=True, append_images=clip[1:], **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    with closing(Seasons()) as seasons:
        if arguments.pictures:
            write_pictures(seasons, arguments.pictures)
        for name, player in (("scripted", scripted_player), ("random", random_player)):
            for level in LEVELS:
                seeds = range(1, arguments.episodes + 1)
                played = [episode(seasons, player, level, seed) for seed in seeds]
                won = [one.timesteps * 4 / 60 for one in played if one.result == 1]
                progress = np.mean([one.progress for one in played])
                seconds = f" in {np.median(won):.0f} s (median)" if won else ""
                sys.stdout.write(
                    f"{name}, {level}: {len(won)} of {len(played)} at the flag{seconds}, "
                    f"{100 * progress:.0f} % of the level\n"
                )


if __name__ == "__main__":
    main()
