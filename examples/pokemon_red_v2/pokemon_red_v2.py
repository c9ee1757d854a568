"""What game.yaml cannot say of the rewards of PokemonRedExperiments, v2."""

from collections.abc import Mapping
from typing import Any

EXPLORE, STUCK, HEAL = 0.0125, -0.025, 5.0  # their weights times their reward_scale of 0.5
STUCK_VISITS = 600


class Exploration:
    """New places, places visited too often, and healing.

    A place is visited at each timestep that ends there outside of battles; the beginning of the
    episode does not count. `stuck` is a state: its penalty is paid when the player comes to a place
    of 600 visits, and given back when the player leaves it.
    """

    def reset(self, variables: Mapping[str, Any]) -> None:  # noqa: ARG002 - every class takes them
        self.visits: dict[tuple[int, int, int], int] = {}
        self.is_stuck = False
        self.health = 1.0
        self.party_size = 0

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        return {
            "explore": EXPLORE * self._visit(variables),
            "stuck": STUCK * self._change_of_stuck(variables),
            "heal": HEAL * self._healed(variables) ** 2,
        }

    def _visit(self, variables: Mapping[str, Any]) -> bool:
        """Count a visit; return whether the place is new."""
        if variables["battle"]:
            return False
        place = _place(variables)
        self.visits[place] = self.visits.get(place, 0) + 1
        return self.visits[place] == 1

    def _change_of_stuck(self, variables: Mapping[str, Any]) -> int:
        before = self.is_stuck
        self.is_stuck = self.visits.get(_place(variables), 0) >= STUCK_VISITS
        return self.is_stuck - before

    def _healed(self, variables: Mapping[str, Any]) -> float:
        """Return how far the health of the same party has risen, unless it had none."""
        before, now = self.health, variables["hp_fraction"]
        is_same_party = variables["party_size"] == self.party_size
        self.health, self.party_size = now, variables["party_size"]
        return max(0.0, now - before) if is_same_party and before > 0 else 0.0


def _place(variables: Mapping[str, Any]) -> tuple[int, int, int]:
    return variables["map_id"], variables["x"], variables["y"]
