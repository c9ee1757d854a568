"""What game.yaml cannot say of the rewards of PokemonRedExperiments, v1."""

from collections.abc import Mapping
from typing import Any

SCALE = 4 * 0.1  # their reward_scale, times the factor of each timestep
LEVEL_KNEE, SLOPE_ABOVE = 22, 0.25
PLACE, PLACE_LATER = 3 * 0.005, 3 * 0.01  # their explore_weight is 3


class Progress:
    """Levels of the party and of opponents, healing, faints, and new places.

    Places are counted anew, and weigh twice as much, once the party has 22 levels. The beginning of
    the episode is no visit.
    """

    def reset(self, variables: Mapping[str, Any]) -> None:
        self.places: dict[tuple[int, int, int], int] = {}
        self.places_before: int | None = None  # until the party has 22 levels
        self.level, self.opponent_level = _level_score(variables), _opponent_score(variables)
        self.health = 1.0
        self.party_size = 0

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        explored = self._explored()
        self._visit(variables)
        heal, dead = self._health_changes(variables)
        level, opponent = self.level, self.opponent_level
        self.level = max(level, _level_score(variables))
        self.opponent_level = max(opponent, _opponent_score(variables))
        return {
            "level": SCALE * (self.level - level),
            "op_lvl": SCALE * 0.2 * (self.opponent_level - opponent),
            "heal": SCALE * 4 * heal,
            "dead": SCALE * -0.1 * dead,
            "explore": SCALE * (self._explored() - explored),
        }

    def _visit(self, variables: Mapping[str, Any]) -> None:
        if self.places_before is None and _level_sum(variables) >= LEVEL_KNEE:
            self.places_before = len(self.places)
            self.places = {}
        place = variables["map_id"], variables["x"], variables["y"]
        self.places[place] = self.places.get(place, 0) + 1

    def _explored(self) -> float:
        if self.places_before is None:
            return PLACE * len(self.places)
        return PLACE * self.places_before + PLACE_LATER * len(self.places)

    def _health_changes(self, variables: Mapping[str, Any]) -> tuple[float, int]:
        """Return how far the health of the same party has risen, and 1 if it rose from nothing."""
        rise = variables["hp_fraction"] - self.health
        is_same_party = variables["party_size"] == self.party_size
        had_none = self.health <= 0
        self.health, self.party_size = variables["hp_fraction"], variables["party_size"]
        if rise <= 0 or not is_same_party:
            return 0.0, 0
        return (0.0, 1) if had_none else (rise, 0)


def _level_sum(variables: Mapping[str, Any]) -> int:
    return max(0, sum(max(0, level - 2) for level in variables["levels"]) - 4)


def _level_score(variables: Mapping[str, Any]) -> float:
    found = _level_sum(variables)
    return min(found, LEVEL_KNEE) + SLOPE_ABOVE * max(0, found - LEVEL_KNEE)


def _opponent_score(variables: Mapping[str, Any]) -> int:
    return max(0, variables["opponent_level"] - 5)
