"""What game.yaml cannot say of the rewards of pyboy_environment in Super Mario Land."""

from collections.abc import Mapping
from typing import Any


class Distance:
    """Pixels beyond the farthest place of the episode; the place at the beginning counts as 0."""

    def reset(self, variables: Mapping[str, Any]) -> None:  # noqa: ARG002 - every class takes them
        self.farthest = 0

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        before = self.farthest
        self.farthest = max(before, _x_in_the_level(variables))
        return {"position": self.farthest - before}


def _x_in_the_level(variables: Mapping[str, Any]) -> int:
    """Return Mario's place, from blocks of 16 pixels, the scrolling within one, and the screen."""
    within = (variables["scroll_x"] - 7) % 16 or 16
    found: int = 16 * variables["level_block"] + within + variables["mario_x"]
    return found
