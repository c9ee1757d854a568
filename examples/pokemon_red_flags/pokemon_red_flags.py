"""What game.yaml cannot say of the rewards and endings of pokemon-red-ai."""

from collections.abc import Mapping
from typing import Any

TIME = -0.0005
MILESTONES = {5: 50.0, 10: 150.0, 14: 300.0, 16: 500.0}
FLAGS = (
    "followed_oak_into_lab",
    "got_starter",
    "battled_rival_in_oaks_lab",
    "beat_rival_in_oaks_lab",
    "got_oaks_parcel",
    "delivered_oaks_parcel",
    "got_pokedex",
    "got_pokeballs_from_oak",
    "got_town_map",
    "beat_viridian_forest_trainer_0",
    "beat_viridian_forest_trainer_1",
    "beat_viridian_forest_trainer_2",
    "beat_pewter_gym_trainer_0",
    "beat_brock",
    "got_tm34_bide",
    "beat_rival_route22",
    "got_old_rod",
    "got_bicycle_voucher",
)
STUCK_AFTER, WITHOUT_PROGRESS, FEW_PLACES = 1_000, 2_000, 10


class Milestones:
    """Rewards for numbers of flags that were ever set, and the end of an episode that is stuck.

    Stuck is who has seen few places, with no new level or badge for long. Flags and milestones of
    the beginning earn nothing.
    """

    def reset(self, variables: Mapping[str, Any]) -> None:
        self.flags: list[str] = []
        self.claimed: list[int] = []
        self.places: list[tuple[int, int, int]] = []  # no more than it takes to be not stuck
        self.timesteps = self.last_progress = 0
        self.level, self.badges = variables["level"], variables["badges"]
        self._claim(variables)

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        self.timesteps += 1
        if variables["level"] > self.level or variables["badges"] > self.badges:
            self.last_progress = self.timesteps
        self.level, self.badges = variables["level"], variables["badges"]
        place = variables["map_id"], variables["x"], variables["y"]
        if len(self.places) < FEW_PLACES and place not in self.places:
            self.places.append(place)
        return {"milestones": self._claim(variables), "time": TIME}

    def endings(self) -> dict[str, bool]:
        waited = self.timesteps - self.last_progress
        is_long = self.timesteps > STUCK_AFTER and waited > WITHOUT_PROGRESS
        return {"stuck": is_long and len(self.places) < FEW_PLACES}

    def _claim(self, variables: Mapping[str, Any]) -> float:
        """Return what milestones earn that are reached for the first time."""
        self.flags += [name for name in FLAGS if variables[name] and name not in self.flags]
        n = len(self.flags)
        reached = [most for most in MILESTONES if n >= most and most not in self.claimed]
        self.claimed += reached
        return sum(MILESTONES[most] for most in reached)
