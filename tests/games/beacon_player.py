"""The players that the tests let play Beacon."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.games.console import Console, state_after_script

ACTIONS = ("idle", "up", "down", "left", "right", "shine")
MOVES = {"idle": (0, 0), "up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
WAYS = {-4: "up", 4: "down", -1: "left", 1: "right"}
LONGEST_EPISODE = 1_500
FAR = 9_999
PIXELS_IN_A_TIMESTEP = 6
FULL_LIGHT = 240
SPIKES = 1
LAMP = (120, 72)
SENT_BACK = 68  # hurt_frames when the keeper is back where he came in
PATIENCE = 30  # timesteps in which a cautious player may come no nearer

# The rooms in the order in which keys and doors allow it; -n: take the key n, which lies here.
ROUTES = {
    "shore": (21, 20, -1, 21, 22, 18, 19, -2, 18, 22, 21, 17),
    "caves": (13, 14, 15, 11, -3, 15, 14, 13, 17, 16, -4, 17, 13, 12, 8, 9, 10),
    "lighthouse": (6, 5, 4, 0, -5, 4, 5, 6, 7, 3, -6, 7, 6, 5, 1, 2),
}
PARTS = tuple(ROUTES)
Cells = tuple[int, ...]

state_of = functools.cache(functools.partial(state_after_script, "beacon"))


class Beacon(Console):
    """A console with Beacon in it, at the start of a part."""

    def __init__(self) -> None:
        super().__init__("beacon")

    def begin(self, part: str, seed: int) -> None:
        self.load(state_of(part), seed)

    def enter(self, room: int, y: int, *, by: str = "right") -> None:
        """Enters `room` at the height y, walking left or right, from a start state's room."""
        self["player_x"], self["player_y"] = (8, y) if by == "left" else (151, y)
        self["room"] = room + 1 if by == "left" else room - 1
        self.hold([by])
        self.run(20)
        self.hold([])

    def cells(self) -> Cells:
        """What each cell of the room is, 9 rows of 16; the first lies under the top rows."""
        first = self.symbols["_cells"]
        return tuple(self.pyboy.memory[first : first + 144])

    def item_place(self) -> tuple[int, int]:
        memory, symbols = self.pyboy.memory, self.symbols
        return memory[symbols["_item_x"]], memory[symbols["_item_y"]]

    def dangers(self) -> list[tuple[int, int]]:
        """Where the creatures are that can hurt."""
        return [
            (self[f"creature_{i}_x"], self[f"creature_{i}_y"])
            for i in (1, 2, 3)
            if self[f"creature_{i}_kind"]
            and not self.pyboy.memory[self.symbols[f"_creature_{i}_dazzled"]]
        ]


@dataclass(frozen=True)
class Episode:
    result: int
    timesteps: int
    keys: int
    doors: int
    lives: int
    rooms: frozenset[int]


Player = Callable[[Beacon, np.random.Generator], str]


def episode(
    beacon: Beacon, player: Player, part: str, seed: int, *, longest: int = LONGEST_EPISODE
) -> Episode:
    beacon.begin(part, seed)
    rng = np.random.default_rng(seed)
    timesteps, rooms = 0, set()
    while beacon["result"] == 0 and timesteps < longest:
        beacon.step(player(beacon, rng))
        rooms.add(beacon["room"])
        timesteps += 1
    return Episode(
        beacon["result"],
        timesteps,
        beacon["keys"],
        beacon["doors"],
        beacon["lives"],
        frozenset(rooms),
    )


def random_player(_beacon: Beacon, rng: np.random.Generator) -> str:
    return ACTIONS[rng.integers(len(ACTIONS))]


# --- the scripted player ---


def kind_at(cells: Cells, x: int, y: int) -> int:
    return cells[(y & 0xF0) | (x >> 4)]


@functools.cache
def free_places(cells: Cells) -> np.ndarray:
    """Bool [144, 160]: whether the keeper's feet fit there."""
    solid = np.array([[kind_at(cells, x, y) >= 0x80 for x in range(160)] for y in range(144)])
    free = np.zeros((144, 160), dtype=bool)
    for y in range(19, 140):
        for x in range(5, 155):
            free[y, x] = not solid[y - 3 : y + 5, x - 5 : x + 6].any()
    return free


ROWS, COLUMNS = np.mgrid[:144, :160]
EDGES = {"up": ROWS <= 20, "down": ROWS >= 139, "left": COLUMNS <= 6, "right": COLUMNS >= 153}


@functools.cache
def distances(cells: Cells, goal: str, item: tuple[int, int]) -> np.ndarray:
    """Steps of a pixel from each place to a way out, or to the item; int [144, 160]."""
    free = free_places(cells).copy()
    away = np.full((144, 160), FAR)
    queue: deque[tuple[int, int]] = deque()
    for way, edge in EDGES.items():
        if way == goal:
            queue.extend((int(y), int(x)) for y, x in np.argwhere(free & edge))
        else:
            free &= ~edge
    if goal == "item":
        queue.append(item[::-1])
    for y, x in queue:
        away[y, x] = 0
    while queue:
        y, x = queue.popleft()
        for i, j in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            if free[y + i, x + j] and away[y + i, x + j] == FAR:
                away[y + i, x + j] = away[y, x] + 1
                queue.append((y + i, x + j))
    return away


class ScriptedPlayer:
    """Knows the map, walks the shortest way, keeps away from creatures, waits for spikes."""

    def __init__(self, *parts: str) -> None:
        self.route = deque(stop for part in parts for stop in ROUTES[part])
        self.nearest = FAR  # to what it wants now
        self.waits = 0  # timesteps since it came nearer
        self.room = 0
        self.since_change = 0  # timesteps; the cells of a new room are there a few frames after it

    def __call__(self, beacon: Beacon, _rng: np.random.Generator) -> str:
        self.since_change = self.since_change + 1 if beacon["room"] == self.room else 0
        self.room = beacon["room"]
        if self.since_change < 3 or beacon["hurt_frames"] > SENT_BACK:
            return "idle"
        self._strike_off(beacon)
        goal = self._goal(beacon)
        item = beacon.item_place() if self.route else LAMP
        away = distances(self._cells_to_walk(beacon), goal, item)
        place = beacon["player_x"], beacon["player_y"]
        if goal != "item" and not away[place[::-1]]:
            return goal
        self._count_waiting(away[place[::-1]])
        dangers = beacon.dangers()
        if beacon["light"] == FULL_LIGHT and any(gap(place, danger) < 36 for danger in dangers):
            return "shine"
        return min(MOVES, key=lambda action: self._cost(beacon, away, place, action, dangers))

    def _strike_off(self, beacon: Beacon) -> None:
        room, taken = beacon["room"], beacon["keys_taken"]
        while self.route and (
            self.route[0] == room or (self.route[0] < 0 and taken >> (-self.route[0] - 1) & 1)
        ):
            self.route.popleft()
            self.nearest, self.waits = FAR, 0

    def _goal(self, beacon: Beacon) -> str:
        if not self.route or self.route[0] < 0:
            return "item"
        return WAYS[self.route[0] - beacon["room"]]

    def _cells_to_walk(self, beacon: Beacon) -> Cells:
        """Doors whose key is there count as open, and so does the lamp, where all ends."""
        taken = beacon["keys_taken"]
        return tuple(
            0 if kind == 0xC0 or (kind & 0xF8 == 0xA0 and taken >> (kind & 7) & 1) else kind
            for kind in beacon.cells()
        )

    def _count_waiting(self, away: int) -> None:
        self.waits += 1
        if away < self.nearest:
            self.nearest, self.waits = away, 0
        elif self.waits > 2 * PATIENCE:
            self.waits = 0

    def _cost(
        self,
        beacon: Beacon,
        away: np.ndarray,
        place: tuple[int, int],
        action: str,
        dangers: list[tuple[int, int]],
    ) -> float:
        """How far the place is to which the action leads, and how bad it is to be there."""
        (x, y), (dx, dy), cells = place, MOVES[action], beacon.cells()
        for _ in range(PIXELS_IN_A_TIMESTEP):
            if away[y + dy, x + dx] == FAR:
                break
            x, y = x + dx, y + dy
            if away[y, x] == 0:
                return 0
        if away[y + dy, x + dx] == FAR and any(edge[y + dy, x + dx] for edge in EDGES.values()):
            return FAR  # the wrong way out
        cost = away[y, x] + (1.0 if action == "idle" else 0.0)
        if beacon["spikes_up"] and kind_at(cells, x, y) == SPIKES != kind_at(cells, *place):
            cost += 500
        if beacon["hurt_frames"] < 8:
            cost += sum(self._fear(gap((x, y), danger)) for danger in dangers)
        return cost

    def _fear(self, distance: int) -> float:
        if distance < 14:
            return 300
        is_patient = self.waits < PATIENCE
        return 3 * (30 - distance) if distance < 30 and is_patient else 0


def gap(a: tuple[int, int], b: tuple[int, int]) -> int:
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))
