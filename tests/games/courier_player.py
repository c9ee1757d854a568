"""Courier, and three players: one that remembers the sign, one that does not, and a random one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from tests.games.console import Console, state_after_script

LENGTHS = {"road_25": 25, "road_100": 100, "road_300": 300, "road_1000": 1_000}
SUN, MOON = 1, 2
LONGEST_EPISODE = 6_000  # timesteps


@cache
def started(road: str) -> bytes:
    return state_after_script("courier", road)


class Courier(Console):
    """The console with Courier in it."""

    def __init__(self) -> None:
        super().__init__("courier")

    def begin(self, road: str, seed: int) -> None:
        """Begin a road, and wait until the sign is there and a timestep begins as one of steps."""
        self.load(started(road), seed)
        while self["sign"] == 0:
            self.run(1)
        self.run(-self.at("frames") % 4 + 3)

    def at(self, symbol: str) -> int:
        """Return a byte that game.yaml does not name."""
        return self.pyboy.memory[self.symbols[f"_{symbol}"]]


Player = Callable[[Courier, np.random.Generator], str]


def remembering_player(courier: Courier, _: np.random.Generator) -> str:
    if not courier["at_fork"]:
        return "right"
    return "up" if courier["sign"] == SUN else "down"


def forgetful_player(courier: Courier, rng: np.random.Generator) -> str:
    return ("up", "down")[rng.integers(2)] if courier["at_fork"] else "right"


def random_player(_: Courier, rng: np.random.Generator) -> str:
    return ("idle", "right", "up", "down")[rng.integers(4)]


class Episode(NamedTuple):
    """How an episode ended: result 1 home, 2 the wrong gate, 0 neither; and its timesteps."""

    result: int
    timesteps: int


def episode(courier: Courier, player: Player, road: str, seed: int) -> Episode:
    courier.begin(road, seed)
    rng = np.random.default_rng(seed)
    for timestep in range(1, LONGEST_EPISODE + 1):
        courier.step(player(courier, rng))
        if courier["result"]:
            return Episode(courier["result"], timestep)
    return Episode(0, LONGEST_EPISODE)
