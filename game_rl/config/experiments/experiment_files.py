"""Files of experiments that train members in generations or rounds, whatever their kind."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.config.experiments.mixture_files import Mixture, dump_mixture, load_mixture, mixture_of
from game_rl.config.experiments.population_files import (
    Population,
    dump_population,
    load_population,
    population_of,
)
from game_rl.config.kind import kind_in, kind_of
from game_rl.config.loader import Source
from game_rl.config.schema import RunConfig
from game_rl.config.yaml_tree import Node

Experiment = Population | Mixture


def load_experiment(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Experiment:
    """What the file describes.

    Args:
        is_saved: the file is one that `dump_experiment` wrote.

    Raises:
        ConfigError: with every problem of the file.
    """
    load = load_mixture if kind_of(path, overrides) == "mixture" else load_population
    return load(path, overrides, is_saved=is_saved)


def experiment_of(source: Source, root: Node) -> Experiment:
    """As `load_experiment`, of a tree that was read from `source`."""
    make = mixture_of if kind_in(source, root) == "mixture" else population_of
    return make(source, root, [])


def players_of(experiment: Experiment) -> tuple[RunConfig, ...]:
    """The config of a member, and of the learner where there is one."""
    if experiment.learner is None:
        return (experiment.run,)
    return experiment.run, experiment.learner


def dump_experiment(experiment: Experiment) -> str:
    """YAML that `load_experiment` reads back as an equal one, wherever it is."""
    if isinstance(experiment, Mixture):
        return dump_mixture(experiment)
    return dump_population(experiment)
