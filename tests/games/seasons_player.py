"""The players that the tests let play Seasons."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.games.console import Console, state_after_script

ACTIONS = ("idle", "right", "jump_right", "jump", "left", "jump_left")
LEVELS = ("spring", "summer", "autumn", "winter")
LONGEST_EPISODE = 750
SOLID, BRAMBLE = 0x80, 2

state_of = functools.cache(functools.partial(state_after_script, "seasons"))


class Seasons(Console):
    """A console with Seasons in it, at the start of a level."""

    def __init__(self) -> None:
        super().__init__("seasons")

    def begin(self, level: str, seed: int) -> None:
        self.load(state_of(level), seed)

        memory, symbols = self.pyboy.memory, self.symbols
        first, kinds = symbols["_cells"], symbols["_cell_kinds"]
        numbers = memory[first : first + 8 * self["columns"]]
        self.kinds = [memory[kinds + number] for number in numbers]

    def kind_at(self, x: int, y: int) -> int:
        """What the cell at this pixel of the level was when it began."""
        index = x >> 4 << 3 | y >> 4
        if not 0 <= y < 128:
            return 0
        return self.kinds[index] if index < len(self.kinds) else SOLID  # nobody goes beyond the end

    def creatures(self) -> list[tuple[int, int]]:
        """Where snails and bees are."""
        return [
            (self[f"creature_{i}_x"], self[f"creature_{i}_y"])
            for i in (1, 2, 3)
            if self[f"creature_{i}_kind"] in (1, 2)
        ]


@dataclass(frozen=True)
class Episode:
    result: int
    timesteps: int
    progress: float
    apples: int
    lives: int


Player = Callable[[Seasons, np.random.Generator], str]


def episode(seasons: Seasons, player: Player, level: str, seed: int) -> Episode:
    seasons.begin(level, seed)
    rng = np.random.default_rng(seed)
    timesteps = 0
    while seasons["result"] == 0 and timesteps < LONGEST_EPISODE:
        seasons.step(player(seasons, rng))
        timesteps += 1
    return Episode(
        seasons["result"],
        timesteps,
        seasons["progress"] / (2 * seasons["columns"]),
        seasons["apples"],
        seasons["lives"],
    )


def random_player(_seasons: Seasons, rng: np.random.Generator) -> str:
    return ACTIONS[rng.integers(len(ACTIONS))]


# --- the scripted player: it imagines where each way to go on would lead ---

FRAMES_IMAGINED = 72
DEAD = -10_000
# Which way, after how many frames the button is pressed, for how many, and the first action.
PLANS = (
    (1, 0, 0, "right"),
    *((1, delay, held, "right") for delay in (4, 8, 12, 16, 20, 24, 28) for held in (24, 8)),
    (1, 0, 24, "jump_right"),
    (1, 0, 8, "jump_right"),
    (0, 0, 0, "idle"),
    (-1, 0, 0, "left"),
    (0, 0, 24, "jump"),
    (-1, 0, 24, "jump_left"),
)


@dataclass
class Fox:
    """A copy of the rules of runner.c, good to a pixel or two."""

    seasons: Seasons
    x: int
    y: int
    speed: int
    on_ground: bool
    sixteenths: int = 0

    def is_solid(self, x: int, y: int) -> bool:
        return self.seasons.kind_at(x, y) >= SOLID

    def frame(self, way: int, *, button: bool, number: int) -> None:
        for _ in range(1 + number % 2 if way else 0):
            ahead = self.x + 6 * way
            if not (self.is_solid(ahead, self.y - 2) or self.is_solid(ahead, self.y - 12)):
                self.x += way
        if self.on_ground and not self._stands():
            self.on_ground, self.speed = False, 0
        elif self.on_ground and button:
            self.on_ground, self.speed = False, -62
        if not self.on_ground:
            self._fall(button=button)

    def _stands(self) -> bool:
        return self.is_solid(self.x - 4, self.y) or self.is_solid(self.x + 4, self.y)

    def _fall(self, *, button: bool) -> None:
        moved = self.speed + self.sixteenths
        self.y, self.sixteenths = self.y + (moved >> 4), moved & 15
        head = self.y - 14
        if self.speed < 0 and (self.is_solid(self.x - 4, head) or self.is_solid(self.x + 4, head)):
            self.y, self.speed = (head & ~15) + 30, 0
        elif self.speed >= 0 and self._stands():
            self.y, self.speed, self.sixteenths, self.on_ground = self.y & ~15, 0, 0, True
        self.speed = min(62, self.speed + (3 if button and self.speed < 0 else 6))


def scripted_player(seasons: Seasons, _rng: np.random.Generator) -> str:
    """Takes the plan that leads furthest without harm."""
    foes = [] if seasons["hurt_frames"] > 12 else seasons.creatures()
    return max(PLANS, key=lambda plan: _worth(seasons, foes, plan))[3]


def _worth(seasons: Seasons, foes: list[tuple[int, int]], plan: tuple[int, int, int, str]) -> int:
    way, delay, held, _ = plan
    speed = seasons["runner_speed"]
    fox = Fox(
        seasons,
        seasons["runner_x"],
        seasons["runner_y"],
        speed - 256 if speed > 127 else speed,
        bool(seasons["on_ground"]),
    )
    if fox.y > 0x7FFF:
        fox.y -= 0x10000
    has_jumped = not fox.on_ground
    for number in range(FRAMES_IMAGINED):
        fox.frame(way, button=delay < number <= delay + held, number=number)
        has_jumped |= not fox.on_ground
        if fox.y > 126 or seasons.kind_at(fox.x, fox.y - 1) == BRAMBLE:
            return DEAD + number
        for x, y in foes:
            if abs(x - fox.x) < 14 and abs(y - (fox.y - 8)) < 15:
                is_stomp = fox.speed > 6 and fox.y - 2 < y
                return 10 * (fox.x + 20) - 3 * number if is_stomp else DEAD + number
        if has_jumped and fox.on_ground:
            break
    return 10 * fox.x - 3 * number  # so that it does not put off what it must do
