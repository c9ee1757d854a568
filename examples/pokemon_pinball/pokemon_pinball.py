"""What game.yaml cannot say of the rewards of pokemon-pinball-gym."""

import math
from collections.abc import Mapping
from typing import Any

SCORE, PER_POINT = 0.3, 1 / 50
TIME, FRAMES, MOST_FRAMES = 0.01, 4, 20_000


class Points:
    """The logarithm of the points of a timestep, and a little for each of the first timesteps."""

    def reset(self, variables: Mapping[str, Any]) -> None:
        self.score = variables["score"]
        self.frames = 0

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        points = 10 * (variables["score"] - self.score)
        self.score = variables["score"]
        self.frames += FRAMES
        return {
            "score": SCORE * math.log1p(PER_POINT * points) if points > 0 else 0.0,
            "time": TIME if self.frames <= MOST_FRAMES else 0.0,
        }
