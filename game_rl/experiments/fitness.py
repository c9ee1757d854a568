"""A member's fitness, from the episodes that it has played."""

from statistics import fmean, pstdev

from game_rl.errors import ExperimentError
from game_rl.events import Fitness
from game_rl.jobs.results import Played
from game_rl.statistics import wilson_interval


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
