"""What game.yaml cannot say of the rewards of neroRL in Pokémon Red."""

from collections.abc import Mapping
from typing import Any

SCALE = 0.5
LEVEL, OPPONENT, HEAL, DEAD, EXPLORE = 1.0, 0.2, 5.0, -0.1, 0.1
KNEE, SLOPE_ABOVE = 22, 0.25


class Progress:
    """Levels of the party and of opponents, healing, faints, and new places."""

    def reset(self, variables: Mapping[str, Any]) -> None:
        self.places: dict[tuple[int, int, int], int] = {}
        self.level, self.opponent = _level_score(variables), _opponent_score(variables)
        self.health = 1.0
        self.party_size = 0

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        level, opponent = self.level, self.opponent
        self.level = max(level, _level_score(variables))
        self.opponent = max(opponent, _opponent_score(variables))
        heal, dead = self._health_changes(variables)
        return {
            "level": SCALE * LEVEL * (self.level - level),
            "op_lvl": SCALE * OPPONENT * (self.opponent - opponent),
            "heal": SCALE * HEAL * heal,
            "dead": SCALE * DEAD * dead,
            "explore": SCALE * EXPLORE * self._visit(variables),
        }

    def _visit(self, variables: Mapping[str, Any]) -> bool:
        """Count a visit, in a battle or not; return whether the place is new."""
        place = variables["map_id"], variables["x"], variables["y"]
        self.places[place] = self.places.get(place, 0) + 1
        return self.places[place] == 1

    def _health_changes(self, variables: Mapping[str, Any]) -> tuple[float, int]:
        """Return how far the health of the same party has risen, and 1 if it rose from nothing."""
        rise = variables["hp_fraction"] - self.health
        is_same_party = variables["party_size"] == self.party_size
        had_none = self.health <= 0
        self.health, self.party_size = variables["hp_fraction"], variables["party_size"]
        if rise <= 0 or not is_same_party:
            return 0.0, 0
        return (0.0, 1) if had_none else (rise, 0)


def _level_score(variables: Mapping[str, Any]) -> float:
    found = max(0, sum(max(0, level - 2) for level in variables["levels"]) - 4)
    return min(found, KNEE) + SLOPE_ABOVE * max(0, found - KNEE)


def _opponent_score(variables: Mapping[str, Any]) -> int:
    return max(0, variables["opponent_level"] - 5)
