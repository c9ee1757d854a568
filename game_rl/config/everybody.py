"""What everybody in an experiment plays: all of it counts where budgets are compared."""

from dataclasses import dataclass

from game_rl.config.experiment_files import Experiment
from game_rl.config.experiments import Population
from game_rl.config.mixtures import Mixture


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
    """Members count their timesteps from the beginning, so only the last update is rounded."""
    config, update = population.config, population.run.rollout_timesteps
    shares = [
        Share(
            f"{config.members} members x {config.generations} generations x "
            f"{config.timesteps_per_generation:,}",
            config.members * config.generations * config.timesteps_per_generation,
            config.members * update,
        )
    ]
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
    learner = Share(
        f"{config.rounds} rounds x {own:,} of the learner",
        config.rounds * own,
        config.rounds * mixture.learner.rollout_timesteps,
    )
    return members, learner
