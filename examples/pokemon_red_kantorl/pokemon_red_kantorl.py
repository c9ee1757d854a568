"""The reward of KantoRL in Pokémon Red, with its weights times its reward_scale of 0.5."""

from collections.abc import Mapping
from typing import Any

EVENT, BADGE, HEAL = 4.0, 5.0, 5.0
PLACE, MAP = 0.5 * 0.3 * 0.1, 1.0  # their explore_weight is 0.3
STUCK, PATIENCE = -0.025, 500
LARGEST_PARTY = 6


class Progress:
    """New events, badges, places and maps, healing, and a penalty while none of them comes.

    Events and badges of the beginning are earned in the first timestep, which also visits its place
    and map for the first time.
    """

    def reset(self, variables: Mapping[str, Any]) -> None:  # noqa: ARG002 - every class takes them
        self.places: dict[tuple[int, int, int], bool] = {}
        self.maps: dict[int, bool] = {}
        self.most_events = self.most_badges = self.fruitless = 0
        self.health: float | None = None  # no timestep yet

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        events, badges = self.most_events, self.most_badges
        self.most_events = max(events, variables["n_events"])
        self.most_badges = max(badges, variables["badges"])
        earned = {
            "event": EVENT * (self.most_events - events),
            "badge": BADGE * (self.most_badges - badges),
            "heal": HEAL * self._healed(variables),
            "explore": PLACE * _is_new(self.places, _place(variables)),
            "map": MAP * _is_new(self.maps, variables["map_id"]),
        }
        self.fruitless = 0 if any(earned.values()) else self.fruitless + 1
        return {**earned, "stuck": STUCK * (self.fruitless > PATIENCE)}

    def _healed(self, variables: Mapping[str, Any]) -> float:
        """Return how far the party's health has risen; without any maximum it counts as 0."""
        size = min(variables["party_size"], LARGEST_PARTY)
        most = sum(variables["near_max_hp"][:size])
        now = sum(variables["near_hp"][:size]) / most if most else 0.0
        before, self.health = self.health, now
        return 0.0 if before is None else max(0.0, now - before)


def _is_new(seen: dict[Any, bool], key: object) -> bool:
    is_new = key not in seen
    seen[key] = True
    return is_new


def _place(variables: Mapping[str, Any]) -> tuple[int, int, int]:
    return variables["map_id"], variables["x"], variables["y"]
