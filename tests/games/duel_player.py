"""A small harness that plays Duel with PyBoy alone, and the players that the tests let play it."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyboy import PyBoy

FOLDER = Path(__file__).parents[2] / "game_rl" / "games" / "duel"
GAME = yaml.safe_load((FOLDER / "game.yaml").read_text())
ACTIONS: dict[str, list[str]] = GAME["actions"]
SYMBOLS = {
    name: int(place.split(":")[1], 16)
    for place, name in (
        line.split()
        for line in (FOLDER / GAME["symbols"]).read_text().splitlines()
        if not line.startswith(";")
    )
}
FRAME_SKIP = 4
LONGEST_FIGHT = 600
STAND, WALK, BLOCK, JUMP, PUNCH, KICK, JUMP_KICK, LAND = range(8)  # fighter.h has the rest
NO_PHASE, STARTUP, ACTIVE, RECOVERY = range(4)


class Duel:
    """One console with the game in it."""

    def __init__(self) -> None:
        rom = io.BytesIO((FOLDER / "duel.gb").read_bytes())
        self.pyboy = PyBoy(
            rom, window="null", sound_emulated=False, no_input=True, cgb=False, log_level="ERROR"
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

    def run_script(self, script: list[dict[str, object]]) -> None:
        for line in script:
            self.hold(line.get("hold", []))  # type: ignore[arg-type]
            self.run(line.get("frames", line.get("wait")))  # type: ignore[arg-type]
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
        self.hold(ACTIONS[action])
        self.run(FRAME_SKIP, render=render)

    def __getitem__(self, variable: str) -> int:
        entry = GAME["variables"][variable]
        address = SYMBOLS[entry["symbol"]]
        if entry["type"] == "u16":
            return self.pyboy.memory[address] + 256 * self.pyboy.memory[address + 1]
        return self.pyboy.memory[address]

    def __setitem__(self, variable: str, value: int) -> None:
        entry = GAME["variables"][variable]
        address = SYMBOLS[entry["symbol"]]
        self.pyboy.memory[address] = value % 256
        if entry["type"] == "u16":
            self.pyboy.memory[address + 1] = value // 256

    def picture(self) -> np.ndarray:
        return np.array(self.pyboy.screen.ndarray[:, :, 0])


@functools.cache
def start_state(level: int) -> bytes:
    """The state in which a fight of this level begins, by the script of game.yaml."""
    duel = Duel()
    duel.run_script(GAME["start_states"][f"level_{level}"]["script"])
    state = duel.save()
    duel.close()
    return state


# A player gets the console, the timestep and a generator, and returns the name of an action.
Player = Callable[[Duel, int, np.random.Generator], str]


@dataclass(frozen=True)
class Fight:
    result: int
    timesteps: int
    rounds: tuple[int, int]

    @property
    def won(self) -> bool:
        return self.result == 1


def fight(duel: Duel, player: Player, level: int, seed: int) -> Fight:
    duel.load(start_state(level), seed)
    rng = np.random.default_rng(seed)
    timesteps = 0
    while duel["fight_result"] == 0 and timesteps < LONGEST_FIGHT:
        duel.step(player(duel, timesteps, rng))
        timesteps += 1
    return Fight(duel["fight_result"], timesteps, (duel["player_rounds"], duel["opponent_rounds"]))


def fights(duel: Duel, player: Player, level: int, count: int) -> Iterator[Fight]:
    seeds = np.random.default_rng(level).choice(np.arange(1, 65_536), size=count, replace=False)
    for seed in seeds:
        yield fight(duel, player, level, int(seed))


def random_player(_duel: Duel, _timestep: int, rng: np.random.Generator) -> str:
    return list(ACTIONS)[rng.integers(len(ACTIONS))]


def cycle(*actions: str) -> Player:
    """Plays the actions in turn, for ever."""
    return lambda _duel, timestep, _rng: actions[timestep % len(actions)]


def sensible_player(duel: Duel, _timestep: int, _rng: np.random.Generator) -> str:
    """Blocks what comes, strikes into recoveries, and otherwise waits just out of reach.

    It uses what a picture shows: the distance, the opponent's pose, and the wall behind the player.
    """
    gap = duel["opponent_x"] - duel["player_x"]
    state, phase = duel["opponent_state"], duel["opponent_phase"]
    attacks = state in (PUNCH, KICK, JUMP_KICK) and phase in (STARTUP, ACTIVE)
    if state == JUMP or (attacks and gap < 60):
        return "block"
    if phase == RECOVERY or state == LAND:
        return "punch" if gap <= 33 else "kick" if gap <= 40 else "right"
    if gap > 52:
        return "right"
    if gap < 40:
        return "left" if duel["player_x"] > 30 else "block"
    return "idle"
