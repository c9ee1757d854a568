"""A small harness that plays a bundled game with PyBoy alone."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import yaml

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyboy import PyBoy

GAMES = Path(__file__).parents[2] / "game_rl" / "games"
ROM_SOURCES = Path(__file__).parents[2] / "rom_sources"
FRAME_SKIP = 4
TWO_BYTES = ("u16", "s16")


class Console:
    """One console with a game in it."""

    def __init__(self, name: str) -> None:
        folder = GAMES / name
        self.game: dict[str, Any] = yaml.safe_load(
            (folder / "game.yaml").read_text(encoding="utf-8")
        )
        self.symbols = {
            symbol: int(place.split(":")[1], 16)
            for place, symbol in (
                line.split()
                for line in (folder / self.game["symbols"]).read_text(encoding="utf-8").splitlines()
                if not line.startswith(";")
            )
        }
        self.pyboy = PyBoy(
            io.BytesIO((folder / self.game["rom"]["path"]).read_bytes()),
            window="null",
            sound_emulated=False,
            no_input=True,
            cgb=self.game["hardware"] == "cgb",
            log_level="ERROR",
        )
        self.held: set[str] = set()

    def close(self) -> None:
        self.pyboy.stop(save=False)

    def hold(self, buttons: list[str]) -> None:
        for button in self.held - set(buttons):
            self.pyboy.button_release(button)
        for button in sorted(set(buttons) - self.held):
            self.pyboy.button_press(button)
        self.held = set(buttons)

    def run(self, frames: int, *, render: bool = False) -> None:
        self.pyboy.tick(frames, render, False)

    def run_script(self, script: list[dict[str, Any]]) -> None:
        for line in script:
            self.hold(line.get("hold", []))
            self.run(line.get("frames", line.get("wait")))
            self.hold([])

    def load(self, state: bytes, seed: int) -> None:
        self.hold([])
        self.run(1)  # PyBoy keeps queued releases across load_state
        self.pyboy.load_state(io.BytesIO(state))
        self.held = set()
        self["rng_seed"] = seed

    def save(self) -> bytes:
        file = io.BytesIO()
        self.pyboy.save_state(file)
        return file.getvalue()

    def step(self, action: str, *, render: bool = False) -> None:
        self.hold(self.game["actions"][action])
        self.run(FRAME_SKIP, render=render)

    def __getitem__(self, variable: str) -> int:
        """What the variable is; signed ones as their two's complement."""
        entry = self.game["variables"][variable]
        address = self.symbols[entry["symbol"]]
        if entry["type"] in TWO_BYTES:
            return self.pyboy.memory[address] + 256 * self.pyboy.memory[address + 1]
        return self.pyboy.memory[address]

    def __setitem__(self, variable: str, value: int) -> None:
        entry = self.game["variables"][variable]
        address = self.symbols[entry["symbol"]]
        self.pyboy.memory[address] = value % 256
        if entry["type"] in TWO_BYTES:
            self.pyboy.memory[address + 1] = value // 256

    def picture(self) -> np.ndarray:
        """The first channel, which is all of it for a game in four shades."""
        return np.array(self.pyboy.screen.ndarray[:, :, 0])


def state_after_script(name: str, start: str) -> bytes:
    """The state at the end of a start state's script."""
    console = Console(name)
    console.run_script(console.game["start_states"][start]["script"])
    state = console.save()
    console.close()
    return state
