"""What everybody in an experiment plays: all of it counts where budgets are compared."""

from dataclasses import dataclass

from game_rl.config.experiments.experiment_files import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig


@dataclass(frozen=True)
class Share:
    """Of some of them, together.

    Attributes:
        text: how it is reckoned, such as `4 members x 4 generations x 16,384`.
        rounding_timesteps: that may come on top, as each run plays up to the end of an update.
    """

    text: str
    timesteps: int
    rounding_timesteps: int


def everybody(experiment: Experiment) -> tuple[Share, ...]:
    """The shares of all who play, whether they are copied over or not."""
    if isinstance(experiment, Mixture):
        return _of_mixture(experiment)
    return _of_population(experiment)


def _of_population(population: Population) -> tuple[Share, ...]:
    """Members count their timesteps from the beginning, so only the last update is rounded; but
    not those that go on with a learner's weights.
    """
    config, update = population.config, population.run.rollout_timesteps
    counted_anew = 1 if population.learner is None else config.generations
    shares = [
        Share(
            f"{config.members} members x {config.generations} generations x "
            f"{config.timesteps_per_generation:,}",
            config.members * config.generations * config.timesteps_per_generation,
            config.members * counted_anew * update,
        )
    ]
    if population.learner is not None:
        own = config.learner_per_generation.timesteps
        shares.append(_of_learner("generations", config.generations, own, population.learner))
    if config.train_on is not None:
        more = config.train_on.timesteps
        shares.append(Share(f"{more:,} of the best, trained on", more, update))
    return tuple(shares)


def _of_mixture(mixture: Mixture) -> tuple[Share, ...]:
    """A clone, and the learner in each round, count from 0: each has an update that is rounded."""
    config, own = mixture.config, mixture.config.learner_per_round.timesteps
    members = Share(
        f"{config.members} members x {config.rounds} rounds x {config.timesteps_per_round:,}",
        config.members * config.total_timesteps,
        config.members * config.rounds * mixture.run.rollout_timesteps,
    )
    return members, _of_learner("rounds", config.rounds, own, mixture.learner)


def _of_learner(stages: str, times: int, timesteps: int, run: RunConfig) -> Share:
    return Share(
        f"{times} {stages} x {timesteps:,} of the learner",
        times * timesteps,
        times * run.rollout_timesteps,
    )
