"""The figures and the clip of docs/games/courier.md, made again.

python -m tests.games.play_courier [--episodes 10] [--pictures docs/games]
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.games.courier_player import (
    LENGTHS,
    Courier,
    episode,
    forgetful_player,
    random_player,
    remembering_player,
)

CLIP_SEEDS = (1, 4)  # a moon and a sun
CLIP_FRAME_MS = 67
LAST_FRAMES = 60


def write_clip(courier: Courier, folder: Path) -> None:
    """Two of the shortest roads, to either gate."""
    clip = []
    rng = np.random.default_rng(0)

    def add() -> None:
        seen = Image.fromarray(np.array(courier.pyboy.screen.ndarray[:, :, :3]))
        clip.append(seen.quantize(4))

    for seed in CLIP_SEEDS:
        courier.begin("road_25", seed)
        while not courier["result"]:
            courier.step(remembering_player(courier, rng), render=True)
            add()
        courier.hold([])
        for _ in range(0, LAST_FRAMES, 4):
            courier.run(4, render=True)
            add()
    settings: dict[str, Any] = {"duration": CLIP_FRAME_MS, "loop": 0, "optimize": True}
    clip[0].save(folder / "courier.gif", save_all=True, append_images=clip[1:], **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    players = {
        "remembering": remembering_player,
        "forgetful": forgetful_player,
        "random": random_player,
    }
    with closing(Courier()) as courier:
        if arguments.pictures:
            write_clip(courier, arguments.pictures)
        for name, player in players.items():
            for road in LENGTHS:
                seeds = range(1, arguments.episodes + 1)
                played = [episode(courier, player, road, seed) for seed in seeds]
                home = [one.timesteps for one in played if one.result == 1]
                length = np.median([one.timesteps for one in played])
                sys.stdout.write(
                    f"{name}, {road}: {len(home)} of {len(played)} home, "
                    f"{length:.0f} timesteps (median)\n"
                )


if __name__ == "__main__":
    main()
