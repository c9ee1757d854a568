"""Recorded episodes of the tiny game."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.games.definition import load_game
from tests.tiny_run import TINY_GAME

GAME = load_game(str(TINY_GAME))
FRAME_SKIP = 8
BUTTONS = {"right": ["right"], "punch": ["a"]}


def record(folder: Path, n: int, *, most: int = 40) -> list[Path]:
    """Record `n` episodes of a player that walks to its opponent and hits; some end before."""
    folder.mkdir(exist_ok=True)
    return [_record(folder / f"{number}.json", number, most) for number in range(n)]


def _record(file: Path, seed: int, most: int) -> Path:
    beginning = {"start_state": "level_1", "idle_frames": seed}
    actions: list[str] = []
    with closing(make_game_env(EnvConfig(frame_skip=FRAME_SKIP), GAME)) as env:
        env.reset(seed=seed, options=dict(beginning))
        over = False
        while not over and len(actions) < most:
            values: dict[str, Any] = env.read_variables()
            is_near = abs(values["player_x"] - values["opponent_x"]) <= 24
            actions.append("punch" if is_near else "right")
            _, _, terminated, truncated, _ = env.step(GAME.action_names.index(actions[-1]))
            over = terminated or truncated
        reward = sum(env.reward_terms.values())
    episode = {
        **beginning,
        "seed": seed,
        "frame_skip": FRAME_SKIP,
        "actions": actions,
        "rom_sha256": GAME.rom.sha256,
        "reward": reward,
    }
    file.write_text(json.dumps(episode), encoding="utf-8")
    return file


def changed(file: Path, **keys: object) -> Path:
    """Change keys of a recorded episode; None removes one."""
    episode = {**json.loads(file.read_text(encoding="utf-8")), **keys}
    kept = {key: value for key, value in episode.items() if value is not None}
    file.write_text(json.dumps(kept), encoding="utf-8")
    return file


def as_presses(file: Path, *, late_frames: int = 0) -> Path:
    """Give a recorded episode the buttons of every frame, all later by some frames."""
    actions: Sequence[str] = json.loads(file.read_text(encoding="utf-8"))["actions"]
    held: list[object] = [[[], late_frames]] if late_frames else []
    held += [[BUTTONS[name], FRAME_SKIP] for name in actions]
    return changed(file, actions=None, presses=held, frame_skip=None, reward=None)
