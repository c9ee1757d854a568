"""An experiment of either kind: read, written, and its budget of timesteps."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.experiments.mixture_files import Mixture, dump_mixture, load_mixture, mixture_of
from game_rl.config.experiments.population_files import (
    Population,
    dump_population,
    load_population,
    population_of,
)
from game_rl.config.loader import Document, config_kind, kind_in
from game_rl.config.schema import RunConfig
from game_rl.config.yaml_tree import Node

Experiment = Population | Mixture


def load_experiment(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Experiment:
    """Return the experiment that the file describes.

    Args:
        is_saved: whether `dump_experiment` wrote the file.

    Raises:
        ConfigError: the file is wrong; the message has every problem.
    """
    load = load_mixture if config_kind(path, overrides) == "mixture" else load_population
    return load(path, overrides, is_saved=is_saved)


def experiment_of(source: Document, root: Node) -> Experiment:
    """As `load_experiment`, for a tree that was read from `source`."""
    make = mixture_of if kind_in(source, root) == "mixture" else population_of
    return make(source, root, [])


def players_of(experiment: Experiment) -> tuple[RunConfig, ...]:
    """Return the config of a member, and of the learner if there is one."""
    if experiment.learner is None:
        return (experiment.run,)
    return experiment.run, experiment.learner


def dump_experiment(experiment: Experiment) -> str:
    """Return YAML that `load_experiment` reads back as an equal experiment, in any folder."""
    if isinstance(experiment, Mixture):
        return dump_mixture(experiment)
    return dump_population(experiment)


@dataclass(frozen=True)
class BudgetShare:
    """Timesteps of some of the runs together.

    Attributes:
        text: the calculation, such as `4 members x 4 generations x 16,384`.
        rounding_timesteps: most timesteps beyond these, as each run plays to the end of an update.
    """

    text: str
    timesteps: int
    rounding_timesteps: int


def budget(experiment: Experiment) -> tuple[BudgetShare, ...]:
    """Return the shares of all runs that play, including those that are copied over."""
    if isinstance(experiment, Mixture):
        return _of_mixture(experiment)
    return _of_population(experiment)


def _of_population(population: Population) -> tuple[BudgetShare, ...]:
    """Return the shares of a population.

    A member counts its timesteps from its beginning on, so only its last update is rounded. One
    that gets the weights of a learner counts from 0 again, with another rounded update.
    """
    config, update = population.config, population.run.rollout_timesteps
    counted_anew = 1 if population.learner is None else config.generations
    shares = [
        BudgetShare(
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
        shares.append(BudgetShare(f"{more:,} of the best, trained on", more, update))
    return tuple(shares)


def _of_mixture(mixture: Mixture) -> tuple[BudgetShare, ...]:
    """Return the shares of a mixture.

    A clone, and the learner in each round, count from 0, so each has a rounded update.
    """
    config, own = mixture.config, mixture.config.learner_per_round.timesteps
    members = BudgetShare(
        f"{config.members} members x {config.rounds} rounds x {config.timesteps_per_round:,}",
        config.members * config.total_timesteps,
        config.members * config.rounds * mixture.run.rollout_timesteps,
    )
    return members, _of_learner("rounds", config.rounds, own, mixture.learner)


def _of_learner(stages: str, times: int, timesteps: int, run: RunConfig) -> BudgetShare:
    return BudgetShare(
        f"{times} {stages} x {timesteps:,} of the learner",
        times * timesteps,
        times * run.rollout_timesteps,
    )
