"""The timesteps of all runs of an experiment, all of which count towards a study's budget."""

from dataclasses import dataclass

from game_rl.config.experiments.experiment_files import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig


@dataclass(frozen=True)
class Share:
    """Timesteps of some of the runs together.

    Attributes:
        text: the calculation, such as `4 members x 4 generations x 16,384`.
        rounding_timesteps: most timesteps beyond these, as each run plays to the end of an update.
    """

    text: str
    timesteps: int
    rounding_timesteps: int


def everybody(experiment: Experiment) -> tuple[Share, ...]:
    """Return the shares of all runs that play, including those that are copied over."""
    if isinstance(experiment, Mixture):
        return _of_mixture(experiment)
    return _of_population(experiment)


def _of_population(population: Population) -> tuple[Share, ...]:
    """Return the shares of a population.

    A member counts its timesteps from its beginning on, so only its last update is rounded. One
    that gets the weights of a learner counts from 0 again, with another rounded update.
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
    """Return the shares of a mixture.

    A clone, and the learner in each round, count from 0, so each has a rounded update.
    """
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
