"""The figures and the pictures of docs/games/beacon.md, made again.

python -m tests.games.play_beacon [--episodes 300] [--pictures docs/games]
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.games.beacon_player import (
    PARTS,
    Beacon,
    Player,
    ScriptedPlayer,
    episode,
    random_player,
)

HUD_HEIGHT, ROOM_WIDTH, ROOM_HEIGHT, MARGIN, GREY = 16, 160, 128, 2, 128
INVISIBLE = 7  # hurt_frames at which the keeper is not drawn
SPEED_FRAMES = 20_000
CLIP_TIMESTEPS = ((0, 200), (470, 610), (1_030, 1_130))  # the first key and its door, caves, tower
CLIP_FRAME_MS = 67
LAST_ROOM = 2


def figures(beacon: Beacon, part: str, player: str, count: int) -> str:
    played = []
    for seed in range(1, count + 1):
        chosen: Player = random_player
        if player == "scripted":
            chosen = ScriptedPlayer(*PARTS[PARTS.index(part) :])
        longest = 3_000 if player == "scripted" else 1_500
        played.append(episode(beacon, chosen, part, seed, longest=longest))
    before = 2 * PARTS.index(part)
    keys = ", ".join(
        f"{100 * sum(one.keys > n for one in played) / count:.1f} %" for n in range(before, 6)
    )
    won = [one.timesteps * 4 / 60 for one in played if one.result == 1]
    lost = sum(one.result == 2 for one in played)
    seconds = f", in {np.median(won):.0f} s (median)" if won else ""
    return (
        f"{player} from {part}: keys {keys}; finished {len(won)} of {count}{seconds}; lost {lost}; "
        f"{np.mean([len(one.rooms) for one in played]):.1f} rooms"
    )


def speed(beacon: Beacon, part: str) -> str:
    beacon.begin(part, 1)
    rng = np.random.default_rng(0)
    start = time.process_time()
    for _ in range(SPEED_FRAMES // 4):
        beacon.step(random_player(beacon, rng))
    return f"{part}: {SPEED_FRAMES / (time.process_time() - start):,.0f} frames/s"


def draw_map(beacon: Beacon) -> Image.Image:
    """All rooms with all doors shut, and nobody in them but creatures."""
    world = Image.new("L", (4 * (ROOM_WIDTH + MARGIN), 6 * (ROOM_HEIGHT + MARGIN)), GREY)
    for room in range(24):
        beacon.begin("shore", 1)
        beacon.enter(room, 80, by="right" if room else "left")
        beacon["hurt_frames"] = INVISIBLE
        beacon.run(1)
        beacon["hurt_frames"] = INVISIBLE
        beacon.run(2, render=True)
        seen = Image.fromarray(beacon.picture()[HUD_HEIGHT:])
        place = room % 4 * (ROOM_WIDTH + MARGIN), room // 4 * (ROOM_HEIGHT + MARGIN)
        world.paste(seen, place)
    return world


def clip(beacon: Beacon) -> list[Image.Image]:
    """Pieces of a scripted player's game, with its end."""
    beacon.begin("shore", 1)
    player, rng = ScriptedPlayer(*PARTS), np.random.default_rng(0)
    pictures: list[Image.Image] = []
    timestep = since_the_end = 0
    while since_the_end < 75:
        beacon.step(player(beacon, rng) if not beacon["result"] else "idle", render=True)
        if any(a <= timestep < b for a, b in CLIP_TIMESTEPS) or beacon["room"] == LAST_ROOM:
            pictures.append(Image.fromarray(beacon.picture()))
        since_the_end += beacon["result"] != 0
        timestep += 1
    return pictures


def write_pictures(beacon: Beacon, folder: Path) -> None:
    draw_map(beacon).save(folder / "beacon_map.png", optimize=True)
    first, *others = clip(beacon)
    settings: dict[str, Any] = {"duration": CLIP_FRAME_MS, "loop": 0, "optimize": True}
    first.save(folder / "beacon.gif", save_all=True, append_images=others, **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    with closing(Beacon()) as beacon:
        if arguments.pictures:
            write_pictures(beacon, arguments.pictures)
        for part in PARTS:
            sys.stdout.write(speed(beacon, part) + "\n")
        for player, part in (("random", "shore"), *(("scripted", part) for part in PARTS)):
            sys.stdout.write(figures(beacon, part, player, arguments.episodes) + "\n")


if __name__ == "__main__":
    main()
