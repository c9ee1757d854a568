"""What game.yaml cannot say of the rewards of PyBoy-RL in Super Mario Land."""

from collections.abc import Mapping
from typing import Any

NEW_LEVEL = 15


class Progress:
    """Pixels moved within the level, and levels reached; nothing while Mario waits to come back."""

    def reset(self, variables: Mapping[str, Any]) -> None:
        self.x = _x_in_the_level(variables)
        self.world, self.level = variables["world"], variables["level"]

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        moved = _x_in_the_level(variables) - self.x
        higher = max(variables["world"] - self.world, variables["level"] - self.level)
        self.reset(variables)
        if variables["respawn_timer"] > 0:
            return {"movement": 0, "level": 0}
        return {"movement": moved, "level": NEW_LEVEL * higher}


def _x_in_the_level(variables: Mapping[str, Any]) -> int:
    """Return Mario's place, from blocks of 16 pixels, the scrolling within one, and the screen."""
    within = (variables["scroll_x"] - 7) % 16 or 16
    found: int = 16 * variables["level_block"] + within + variables["mario_x"]
    return found
