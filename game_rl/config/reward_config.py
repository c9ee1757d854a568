"""The section `algorithm.reward`: rewards as the algorithm learns from them."""

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive


class RewardConfig(StrictModel):
    """What the algorithm makes of rewards before it learns from them: normalised, scaled, clipped.

    Lakes, replays, curves and evaluations have the rewards of the game.
    """

    scale: Positive = 1.0
    """Factor of each reward, after `normalize` and before `clip`."""
    clip: Positive | None = None
    """Limit of each reward, in both directions: 1 leaves -1 to 1; null: no limit."""
    normalize: bool = False
    """Whether each reward is divided by the standard deviation of the discounted returns so far, as
    SB3's VecNormalize does. The mean is not subtracted. Checkpoints keep the statistics, and forks
    take them over."""


RAW = RewardConfig()
"""The section of a config that says nothing about rewards: they are learned as they are."""
