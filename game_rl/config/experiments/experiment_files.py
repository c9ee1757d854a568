"""Reads and writes the files of populations and mixtures, whichever of them a file describes."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.config.experiments.mixture_files import Mixture, dump_mixture, load_mixture, mixture_of
from game_rl.config.experiments.population_files import (
    Population,
    dump_population,
    load_population,
    population_of,
)
from game_rl.config.loader import Source, kind_in, kind_of
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
    load = load_mixture if kind_of(path, overrides) == "mixture" else load_population
    return load(path, overrides, is_saved=is_saved)


def experiment_of(source: Source, root: Node) -> Experiment:
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
