"""The reward of PokemonRL's second sequence, "exploration"."""

from collections.abc import Mapping, Sequence
from math import dist
from typing import Any

MOVES = ("up", "down", "left", "right")
GRASS = (12, 13, 33, 37)
REMEMBERED = 20  # latest actions and positions


class Exploration:
    """Many small rewards for going on, and penalties for going round in circles.

    A timestep in map 0, or in which nothing has changed, earns nothing and is not counted, apart
    from its action.
    """

    def reset(self, variables: Mapping[str, Any]) -> None:
        here = _position(variables)
        self.position = self.last_position = here
        self.history = [here]
        self.visited: dict[tuple[int, int], bool] = {here: True}
        self.visits: dict[tuple[int, int], int] = {}
        self.seen: dict[tuple[int, ...], bool] = {}
        self.map_id, self.maps = variables["map_id"], [variables["map_id"]]
        self.party_size = variables["party_size"]
        self.was_in_grass = self.was_in_battle = False
        self.momentum = self.in_place = self.against_walls = 0
        self.way = 0.0
        self.streak: tuple[str, int] = ("", 0)
        self.actions: list[str] = []
        self.counted_actions: list[str] = []

    def step(self, variables: Mapping[str, Any], action: str) -> dict[str, float]:
        _remember(self.actions, action)
        button, times = self.streak
        self.streak = (action, times + 1 if action == button else 1)
        if variables["map_id"] == 0 or not self._has_changed(variables):
            return {}
        here = _position(variables)
        return {
            "visits": self._visit(here),
            "buttons": self._streaks(),
            "movement": self._move(here, action),
            "variety": self._variety(action),
            "places": self._arrive(variables),
        }

    def _has_changed(self, variables: Mapping[str, Any]) -> bool:
        return (
            _position(variables) != self.position
            or variables["party_size"] != self.party_size
            or variables["map_id"] != self.map_id
            or (variables["battle"] != 0) != self.was_in_battle
            or (variables["map_id"] in GRASS) != self.was_in_grass
        )

    def _visit(self, here: tuple[int, int]) -> float:
        """New positions and a row of them; penalties for old ones and for staying."""
        n = self.visits[here] = self.visits.get(here, 0) + 1
        is_new = here not in self.visited
        self.visited[here] = True
        self.momentum = self.momentum + 1 if is_new else max(0, self.momentum - 1)
        self.in_place = self.in_place + 1 if here == self.last_position else 0
        self.last_position = here
        earned = 5.0 * is_new + 0.5 * (self.momentum > 0) - 1.0 * (n > 3) - 2.0 * (n > 5)
        return earned - 0.05 * (self.in_place > 5) - 0.1 * (self.in_place > 20)

    def _streaks(self) -> float:
        button, times = self.streak
        return -0.1 * (times > 3) - 0.2 * (times > 5) if button in ("a", "b") else 0.0

    def _move(self, here: tuple[int, int], action: str) -> float:
        if here == self.position:
            self.against_walls = self.against_walls + 1 if action in MOVES else 0
            is_stuck = self.against_walls > 10
            self.against_walls *= not is_stuck
            return -0.05 - 0.05 * is_stuck
        distance = dist(here, self.position)
        self.position, self.against_walls = here, 0
        _remember(self.history, here)
        self.way += distance
        is_far = self.way > 50
        self.way *= not is_far
        return 1.0 + 0.2 * distance + 2.0 * is_far

    def _variety(self, action: str) -> float:
        _remember(self.counted_actions, action)
        latest, earned = self.counted_actions, -0.02 * (action == "none")
        if len(latest) >= 10 and _is_pattern(latest):
            earned += -0.1 + 1.0 * (len(set(latest[-3:])) >= 2)
        if len(self.history) >= 10 and _is_loop(self.history[-8:]):
            earned -= 0.1
        return earned + 0.3 * (len(self.actions) >= 8 and len(set(self.actions[-8:])) >= 4)

    def _arrive(self, variables: Mapping[str, Any]) -> float:
        """Other maps, the first of grass and battles, and every new situation."""
        map_id, in_battle = variables["map_id"], variables["battle"] != 0
        earned = 0.0
        if map_id != self.map_id:
            earned += 3.0 + 5.0 * (map_id not in self.maps)
            self.maps = [*self.maps, map_id] if map_id not in self.maps else self.maps
            self.map_id = map_id
        if map_id in GRASS and not self.was_in_grass:
            earned += 20.0
            self.was_in_grass = True
        if in_battle and not self.was_in_battle:
            earned += 10.0
            self.was_in_battle = True
        self.party_size = variables["party_size"]
        situation = (map_id, *_position(variables), self.party_size, int(in_battle))
        is_new = situation not in self.seen
        self.seen[situation] = True
        return earned + 0.1 * is_new


def _position(variables: Mapping[str, Any]) -> tuple[int, int]:
    return variables["x"], variables["y"]


def _remember(latest: list[Any], one: object) -> None:
    latest.append(one)
    del latest[:-REMEMBERED]


def _is_pattern(actions: Sequence[str]) -> bool:
    """Whether the latest two actions came three times, or the latest four twice."""
    return actions[-6:-4] == actions[-4:-2] == actions[-2:] or actions[-8:-4] == actions[-4:]


def _is_loop(positions: Sequence[tuple[int, int]]) -> bool:
    """Whether three positions are near the last one."""
    return sum(dist(one, positions[-1]) < 3 for one in positions[:-1]) >= 3
