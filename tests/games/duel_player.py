"""The players that the tests let play Duel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import yaml

from tests.games.console import GAMES, Console, state_after_script

FOLDER = GAMES / "duel"
GAME = yaml.safe_load((FOLDER / "game.yaml").read_text(encoding="utf-8"))
ACTIONS: dict[str, list[str]] = GAME["actions"]
LONGEST_FIGHT = 600
STAND, WALK, BLOCK, JUMP, PUNCH, KICK, JUMP_KICK, LAND = range(8)  # fighter.h has the rest
NO_PHASE, STARTUP, ACTIVE, RECOVERY = range(4)


class Duel(Console):
    """One console with Duel in it."""

    def __init__(self) -> None:
        super().__init__("duel")


@functools.cache
def start_state(level: int) -> bytes:
    """The state in which a fight of this level begins, by the script of game.yaml."""
    return state_after_script("duel", f"level_{level}")


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
