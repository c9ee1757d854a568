"""A member's fitness, from the episodes that it has played."""

from statistics import fmean, pstdev

from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError
from game_rl.statistics import wilson_interval
from game_rl.training.stretch_result import Played


class Fitness(Saved):
    """How good one policy is over the episodes of one seed."""

    value: float
    """The number that is compared."""
    seed: int
    """Seed that determines the episodes."""
    episodes: int
    deterministic: bool
    """Whether the policy took its most likely actions instead of drawing them."""
    success_rate: float | None
    """Share of successful episodes; None if the game does not define success."""
    success_interval: tuple[float, float] | None
    """Wilson's 95 % interval of the success rate."""
    mean_reward: float
    std_reward: float
    """Standard deviation over the episodes."""


def fitness_of(played: Played, metric: str) -> Fitness:
    """Return the fitness of the policy that has played these episodes.

    Raises:
        ExperimentError: the metric is the success rate, and the game does not define success.
    """
    episodes, successes = len(played.rewards), sum(played.successes)
    knows_success = len(played.successes) == episodes
    if metric == "success_rate" and not knows_success:
        raise ExperimentError(
            "the game does not say in every episode whether it was a success; give its game file a "
            "success condition, or write fitness: {metric: mean_reward}"
        )
    mean = fmean(played.rewards)
    rate = successes / episodes if knows_success else None
    return Fitness(
        value=mean if metric == "mean_reward" or rate is None else rate,
        seed=played.seed,
        episodes=episodes,
        deterministic=played.deterministic,
        success_rate=rate,
        success_interval=wilson_interval(successes, episodes) if knows_success else None,
        mean_reward=mean,
        std_reward=pstdev(played.rewards),
    )
